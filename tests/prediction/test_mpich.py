"""MPICH's choices: what the model says, and that its schedules do what MPI defines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job
from tests.support import examples
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.prediction.libraries import CallShape, model_of
from topompi.mpi.prediction.libraries.mpich import MPICH, TABLES
from topompi.schedules import check

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")
METHODS = [name for name, spec in CALLS.items() if spec.collective in TABLES]


def network(hosts):
    """Ranks on hosts, all hosts on one switch, as a library sees them."""
    placed = job("XGFT(1; 16; 1)", range(max(hosts) + 1), [1] * (max(hosts) + 1))
    return placed.part(np.array(hosts))


@pytest.mark.parametrize("method", METHODS)
@examples(12)
@given(data=st.data())
def test_schedules_do_what_mpi_defines_for_every_size_root_and_placement(method, data):
    ranks = data.draw(st.integers(1, 16))
    hosts = data.draw(st.sampled_from([list(range(ranks)), [rank % 3 for rank in range(ranks)]]))
    nbytes = data.draw(st.sampled_from([8, 200, 256, 264, 2048, 4096, 12288, 12296, 2**17, 2**20, 2**23]))
    commutes = data.draw(st.booleans())
    question = CallShape(method, nbytes, np.array(hosts), commutes, item=8)
    decision = MPICH().decide(question)
    if decision is None:
        return
    schedule = decision.schedule(network(hosts), root=data.draw(st.integers(0, ranks - 1)))
    check(schedule, commutative=commutes or decision.collective not in REDUCTIONS)


@pytest.mark.parametrize(
    ("method", "nbytes", "ranks", "algorithm"),
    [
        ("Bcast", 12288, 16, "binomial"),
        ("Bcast", 12289, 16, "scatter_doubling"),
        ("Bcast", 524288, 16, "scatter_doubling"),
        ("Bcast", 524289, 16, "scatter_ring"),
        ("Bcast", 12289, 12, "scatter_ring"),
        ("Bcast", 1 << 20, 7, "binomial"),
        ("Allgather", 32767, 16, "doubling"),
        ("Allgather", 32768, 16, "ring"),
        ("Allgather", 8191, 10, "bruck"),
        ("Allgather", 8192, 10, "ring"),
        ("Alltoall", 256, 9, "bruck"),
        ("Alltoall", 257, 9, "scatter_destination"),
        ("Alltoall", 256, 8, "scatter_destination"),
        ("Alltoall", 32769, 8, "pairwise"),
        ("Alltoall", 32769, 9, "shift"),
        ("Reduce", 2048, 8, "binomial"),
        ("Reduce", 2056, 8, "halving"),
        ("Allreduce", 8, 4, "doubling"),
        ("Allreduce", 24, 4, "doubling"),
        ("Allreduce", 32, 4, "halving"),
        ("Reduce_scatter_block", 524280, 6, "halving"),
        ("Reduce_scatter_block", 524288, 6, "pairwise"),
    ],
)
def test_the_algorithm_changes_where_mpichs_tables_say(method, nbytes, ranks, algorithm):
    decision = MPICH().decide(CallShape(method, nbytes, np.arange(ranks), item=8))
    assert decision is not None
    assert decision.algorithm == algorithm


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi", "MPICH 5.0.2"),
        ("MPICH Version:\t4.0.2", "MPICH 4.0.2"),
        ("MPICH Version:      3.4.3", None),
        ("MVAPICH2 Version      :\t2.3.7", None),
        ("MVAPICH Version      :\t3.0", None),
        ("Intel(R) MPI Library 2021.13 for Linux* OS", None),
        ("MPI VERSION    : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)", None),
    ],
)
def test_mpich_4_and_5_are_known_and_no_library_made_from_them(version, known):
    found = model_of(version, {"MPIR_CVAR_ERROR_CHECKING": "0"})
    assert (found and found.name) == known


@pytest.mark.parametrize("variable", ["BCAST_INTRA_ALGORITHM", "ALLREDUCE_SHORT_MSG_SIZE", "REDUCE_DEVICE_COLLECTIVE"])
def test_no_model_knows_a_library_whose_choices_a_variable_changes(variable):
    assert model_of("MPICH Version: 5.0.2", {f"MPIR_CVAR_{variable}": "1"}) is None
