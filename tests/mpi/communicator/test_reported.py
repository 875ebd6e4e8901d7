"""Programs that work natively, as users' reports of MPI libraries describe them: each class works with topompi."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from mpi4py import MPI

from tests.hostile.modes import ENVIRONMENT, variables, words, write_rules
from tests.support import ROOT, mpi_job, mpirun, run_mpi, shared_data, with_reasons

PROGRAMS = ROOT / "tests" / "programs"
OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    write_rules(folder)
    return folder


ASKING, ADDRESSED, UNREADABLE = (PROGRAMS / f"{name}.py" for name in ("asking", "addressed", "unreadable"))
# Programs that share a job, by mode and number of ranks; those that leave most behind come last.
TOGETHER = {
    ("native", 2): (ASKING, "persist_freed.py", "tag_wrap.py"),
    ("schedules", 2): (ASKING, "attr_copy_in_call.py", "persist_freed.py", "tag_wrap.py"),
    ("native", 3): (ADDRESSED, "persistent_order.py", "returns_none.py"),
    ("schedules", 3): (ADDRESSED, "persistent_order.py", "returns_none.py", UNREADABLE),
    ("measure", 3): ("whole_vector_op.py", UNREADABLE),
}


@pytest.fixture(scope="module")
def lines(rules, tmp_path_factory):
    """Runs a program on ranks in a mode, each but once; returns what all ranks printed, in order."""

    @cache
    def run(mode, ranks, *programs, timeout=60):
        cases = [one if isinstance(one, Path) else shared_data(f"cases/mpi/{one}") for one in programs]
        several = [PROGRAMS / "several.py"] if len(cases) > 1 else []
        cached = str(tmp_path_factory.mktemp("cache"))
        env = {"TOPOMPI_TUNE": "measure", "XDG_CACHE_HOME": cached} if mode == "measure" else {}
        launcher = words("virtual" if env else mode, rules)
        done = run_mpi(ranks, "-m", *launcher, *several, *cases, timeout=timeout, env={**ENVIRONMENT, **env})
        assert done.returncode == 0, done.stderr[-4000:]
        if not several:
            return {programs[0]: sorted(done.stdout.splitlines())}
        everyone = json.loads(done.stdout)
        return {
            one: sorted(line for printed in everyone for line in printed[str(case)].splitlines())
            for one, case in zip(programs, cases, strict=True)
        }

    def of(mode, ranks, program, **options):
        together = TOGETHER.get((mode, ranks), ())
        return run(mode, ranks, *(together if program in together else [program]), **options)[program]

    return of


@pytest.mark.parametrize("mode", ["default", "schedules"])
def test_communicators_and_their_classes_answer_as_natively(lines, mode):
    assert lines(mode, 2, ASKING) == lines("native", 2, ASKING)


def test_a_communicator_that_a_program_wraps_answers_all_but_its_very_class_as_natively():
    code = (
        "import pickle, topompi; from mpi4py import MPI; comm = topompi.Intracomm(MPI.COMM_WORLD); kind = type(comm)\n"
        "print(kind.__module__, kind.__qualname__, isinstance(comm, MPI.Intracomm), kind is MPI.Intracomm)\n"
        "print(isinstance(MPI.COMM_WORLD, topompi.Intracomm), pickle.loads(pickle.dumps(kind)) is kind)"
    )
    assert run_mpi(1, "-c", code).stdout.splitlines() == ["mpi4py.MPI Intracomm True False", "False True"]


def test_another_handle_is_made_without_a_word_to_other_ranks():
    code = (
        "from mpi4py import MPI; world = MPI.COMM_WORLD\n"
        "if world.rank: print(type(world)(world).rank, MPI.Intracomm(MPI.Comm.f2py(world.py2f())).size, flush=True)"
    )
    done = run_mpi(2, "-m", "topompi", "--topology", "xgft:2,2,2;1,1,1", "--hosts", "h[0000,0005]", "-c", code)
    assert done.stdout == "1 2\n", done.stderr


RULED = """
import json, os, runpy, sys
from mpi4py import MPI
import topompi
from topompi.mpi.dispatch.counters import counters
counters.enabled, world = True, MPI.COMM_WORLD
for rules in sys.argv[2:]:
    os.environ["TOPOMPI_RULES"] = rules
    MPI.COMM_WORLD = topompi.Intracomm(world.Dup(), topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0001", "h0005"])
    counters.rows.clear()
    runpy.run_path(sys.argv[1])
    if world.rank == 0:
        print(json.dumps([row.reason for row in counters.rows.values()]))
counters.enabled = False
"""


def test_an_operation_of_the_user_s_own_sees_whole_vectors(tmp_path):
    cut, whole = ("ring", "halving", "ring/32K"), ("doubling", "leaders")
    files = [tmp_path / str(number) for number in range(5)]
    for file, algorithm in zip(files, cut + whole, strict=True):
        chosen = [{"methods": ["Allreduce"], "algorithm": algorithm}]
        file.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": chosen}))
    done = run_mpi(3, "-c", RULED, shared_data("cases/mpi/whole_vector_op.py"), *files)
    said = done.stdout.splitlines()
    assert len(said) == 10, done.stdout + done.stderr
    for algorithm, results, reasons in zip(cut + whole, said[::2], said[1::2], strict=True):
        assert results.startswith("wrong 0 "), (algorithm, results)
        pieces = f"{algorithm} cannot run: the operation is the user's own, and this schedule applies it to pieces"
        assert any(pieces in reason for reason in json.loads(reasons)) == (algorithm in cut), (algorithm, reasons)


def test_a_trial_cuts_no_vector_of_a_user_s_operation(lines):
    assert lines("measure", 3, "whole_vector_op.py")[0].startswith("wrong 0 ")


@pytest.mark.parametrize("mode", ["native", "default", "schedules"])
def test_a_message_is_as_long_as_its_count_says_however_short_the_memory_that_gives_its_address(lines, mode):
    assert lines(mode, 3, ADDRESSED) == ["201 right"] * 3


def test_a_forced_ring_reduces_what_is_given_by_address(tmp_path):
    path = tmp_path / "rules.json"
    chosen = [{"methods": ["Allreduce"], "algorithm": "ring"}]
    path.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": chosen}))
    code = (
        "import numpy as np; from mpi4py import MPI; world = MPI.COMM_WORLD\n"
        "here, there = np.full(16, world.rank + 1.0), np.zeros(16)\n"
        "messages = [[MPI.memory.fromaddress(one.ctypes.data, 0), 16, MPI.DOUBLE] for one in (here, there)]\n"
        "world.Allreduce(*messages); print((there == 6).all(), flush=True)"
    )
    place = ("--topology", "xgft:2,2,2;1,1,1", "--hosts", "h[0000,0001,0005]")
    done = run_mpi(3, "-m", "topompi", "--verbose", *place, "--rules", path, "-c", code, env=ENVIRONMENT)
    assert done.stdout == "True\n" * 3, done.stderr
    assert re.search("Allreduce .* ring ", done.stderr), done.stderr


@pytest.mark.parametrize("mode", ["default", "schedules"])
def test_a_program_that_initialises_mpi_itself_runs(lines, mode):
    assert lines(mode, 2, "own_init.py") == ["size 2 2", "size 2 2"]


def test_settings_of_mpi4py_in_a_program_count():
    code = (
        "import mpi4py; mpi4py.rc(thread_level='single', finalize=False); from mpi4py import MPI\n"
        "print(MPI.Query_thread() == MPI.THREAD_SINGLE, MPI.COMM_WORLD.allreduce(1)); MPI.Finalize()"
    )
    done = run_mpi(2, "-m", "topompi", "-c", code)
    assert done.stdout == "True 2\n" * 2, done.stderr


def test_data_beside_a_program_is_found_after_a_change_of_folder(lines):
    (found,) = lines("default", 1, "file_after_chdir.py")
    case = shared_data("cases/mpi/file_after_chdir.py")
    assert found == f"{case} {case.parent} {case} True True None SourceFileLoader"


def test_mpi4py_s_own_launcher_runs_under_ours_without_a_warning(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import topompi\nfrom mpi4py import MPI\nprint(isinstance(MPI.COMM_WORLD, topompi.Intracomm))\n")
    done = run_mpi(1, "-m", "topompi", "-m", "mpi4py.run", script)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("program", "ranks", "mode"),
    [
        ("tag_wrap.py", 2, "schedules"),
        ("persistent_order.py", 3, "schedules"),
        ("persist_freed.py", 2, "schedules"),
        ("returns_none.py", 3, "schedules"),
    ],
)
def test_what_a_report_led_to_comes_out_as_natively(lines, program, ranks, mode):
    assert lines(mode, ranks, program) == lines("native", ranks, program)


@pytest.mark.parametrize("mode", ["default", "schedules", "leaves"])
def test_persistent_collectives_go_on_in_every_other_call(rules, tmp_path, mode):
    """The ranks complete them in every way, before or after the call; only if the user asks a plan runs them."""
    env = {**variables(mode), "XDG_CACHE_HOME": str(tmp_path)}
    done = run_mpi(3, "-m", *words(mode, rules), PROGRAMS / "elsewhere.py", tmp_path / "written", env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    said = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    ours = {"schedules": "Allreduce", "leaves": "Neighbor_allgather"}.get(mode)
    made = {name: word for name, word in said if word.endswith("equest")}
    assert made == {
        name: "PersistentRequest" if name == ours else "Prequest" for name in ("Allreduce", "Neighbor_allgather")
    }
    assert [word for _, word in said if word not in made.values()] == ["True"] * 22


@pytest.mark.parametrize("mode", ["schedules", "measure"])
def test_no_rank_waits_for_one_whose_argument_cannot_be_read(lines, mode):
    assert lines(mode, 3, UNREADABLE) == ["done"] * 3


MIXED = """
import os, sys
import numpy as np
from mpi4py import MPI
import topompi
for rules in sys.argv[1:]:
    for native_calls in ("", "0"):
        os.environ |= {"TOPOMPI_RULES": rules, "TOPOMPI_NATIVE_CALLS": native_calls}
        comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0004"])
        send, room = np.ones(3), np.zeros(6)
        for _ in range(3):
            made = comm.Dup()
            for _ in range(12):
                made.Gather(send if comm.rank == 0 else [send, MPI.DOUBLE], room if comm.rank == 0 else None)
            made.Free()
        print("done", flush=True)
"""


def test_no_rank_waits_where_only_some_pass_arrays_to_a_call_that_rules_leave_to_the_library(tmp_path):
    """A rule is for another call, or for longer messages of this one; native calls at the beginning or none."""
    other = {"collective": "allreduce", "algorithm": "doubling"}
    longer = {"collective": "gather", "bytes": [100000, None], "algorithm": "binomial"}
    files = [tmp_path / "other", tmp_path / "longer"]
    for file, rule in zip(files, (other, longer), strict=True):
        file.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}))
    done = run_mpi(2, "-m", "mpi4py", "-c", MIXED, *files, env={**ENVIRONMENT, "TOPOMPI_TUNE": "off"}, timeout=30)
    assert done.stdout == "done\n" * 8, done.stderr[-2000:]


def test_calls_that_the_library_refuses_leave_a_trial_whole(lines):
    found = lines("measure", 2, "tune_zero.py")
    assert sum(line.endswith("-> ok") for line in found) == 2 * 8 * 3, found


def test_callbacks_of_attributes_run_for_dup_alone(lines):
    found = lines("schedules", 2, "attr_copy_in_call.py")
    assert [line for line in found if "during" in line] == ["[0] during calls []", "[1] during calls []"]
    assert [line for line in found if "Free" in line] == ["[0] at Free ['delete']", "[1] at Free ['delete']"]


@pytest.mark.long
@pytest.mark.skipif(OPEN_MPI, reason="Open MPI has millions of communicators")
def test_mpich_holds_as_many_communicators_as_natively(lines):
    number = next(line for line in lines("schedules", 2, "context_ids.py", timeout=200) if "NUMBER" in line)
    assert int(number.split()[2]) >= 2000


@pytest.mark.skipif(not OPEN_MPI, reason="this MPICH cannot revoke communicators")
def test_no_rank_waits_in_a_communicator_that_is_revoked(rules):
    case = shared_data("cases/mpi/ulfm_wait.py")
    line = [*mpirun(), "--with-ft", "ulfm", "-n", "3", sys.executable, "-m", *words("schedules", rules), case]
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(list(map(str, line)), env=env, capture_output=True, text=True, timeout=60)
    found = sorted(done.stdout.splitlines())
    revoked = [f"[{rank}] waits in Allreduce -> Exception cls={MPI.ERR_REVOKED}" for rank in (0, 2)]
    assert [one for one in found if "waits" in one] == revoked, done.stdout + done.stderr[-2000:]
    assert sum("shrunk -> 3" in one for one in found) == 3


def test_checks_see_receive_buffers_in_a_device_s_memory(rules):
    case = shared_data("cases/mpi/mixed_device.py")
    done = mpi_job(2, "-m", *words("virtual", rules), case, timeout=60, env={**ENVIRONMENT, "TOPOMPI_CHECK": "1"})
    assert "expecting one kind of memory on all ranks, got a device's on rank 0; the host's on rank 1" in done.stderr


def test_alltoallw_of_messages_in_a_device_s_memory_is_the_library_s(rules):
    case = shared_data("cases/mpi/alltoallw_device.py")
    done = run_mpi(2, "-m", *words("schedules", rules), case, env={**ENVIRONMENT, "TOPOMPI_VERBOSE": "1"})
    assert done.stdout == "ok [0. 0. 0. 1. 1. 1.]\n", done.stderr
    row = next(line for line in with_reasons(done.stderr) if line.startswith("Alltoallw"))
    assert " native " in row
    assert "cannot run here: no plan takes messages in a device's memory" in row
