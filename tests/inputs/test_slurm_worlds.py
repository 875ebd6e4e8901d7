"""Worlds of one: tasks of srun that should be one MPI job, told from programs that are rightly alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.inputs.slurm.environment import BY_MPIRUN, worlds_of_one

# As Slurm 22.05 sets them for the first of four tasks of srun --mpi=none.
TASK = {
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NODELIST": "h[0000-0003]",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_TASKS_PER_NODE": "1(x4)",
}
PMI2 = {"SLURM_MPI_TYPE": "pmi2", "PMI_FD": "11", "PMI_JOBID": "4.2", "PMI_RANK": "0", "PMI_SIZE": "4"}


@pytest.mark.parametrize("interface", [{}, PMI2, {"SLURM_MPI_TYPE": "pmix", "PMIX_RANK": "0"}])
def test_the_first_of_several_tasks_without_partners_says_how_to_start_them(interface):
    said = worlds_of_one({**TASK, **interface}, 1)
    assert said.startswith("srun started 4 tasks, and each is an MPI program of one rank")
    assert "srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH), or with mpirun" in said


def without(*names):
    return {name: value for name, value in TASK.items() if name not in names}


@pytest.mark.parametrize(
    ("environment", "size"),
    [
        pytest.param(TASK, 4, id="the tasks are one world"),
        pytest.param({**TASK, "SLURM_PROCID": "1"}, 1, id="another task says it"),
        pytest.param({**TASK, "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}, 1, id="srun -n1"),
        pytest.param(without("SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"), 1, id="shell of salloc"),
        pytest.param(without("SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"), 1, id="batch script"),
        pytest.param(
            {**TASK, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}, 1, id="interactive step of salloc"
        ),
        pytest.param({**TASK, "OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"}, 1, id="mpirun -n1, daemons by srun"),
        pytest.param({**TASK, "MPI_LOCALNRANKS": "1", "PMI_SIZE": "1"}, 1, id="mpiexec -n1, proxies by srun"),
        pytest.param(without("SLURM_STEP_ID"), 1, id="variables of a step, but no step"),
        pytest.param({}, 1, id="no Slurm"),
    ],
)
def test_programs_that_are_rightly_alone_are_not_warned(environment, size):
    assert worlds_of_one(environment, size) == ""


words = st.sampled_from(["", "0", "1", "2", "4", "x", "-1", "1(x4)", "9" * 12])
changes = st.sampled_from(["SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", *BY_MPIRUN])


@given(changed=st.dictionaries(changes, words, max_size=3), size=st.integers(1, 2))
def test_a_warning_needs_a_step_of_several_tasks_a_world_of_one_and_no_mpirun(changed, size):
    environment = {**TASK, **changed}
    several = environment.get("SLURM_STEP_NUM_TASKS") in ("2", "4") and bool(environment.get("SLURM_STEP_ID"))
    alone = size == 1 and environment.get("SLURM_PROCID") == "0" and not set(BY_MPIRUN) & set(environment)
    assert bool(worlds_of_one(environment, size)) == (several and alone)
