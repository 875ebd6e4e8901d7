"""``python -m topompi`` as a launcher: programs run as without it, and topompi's commands still work."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.support import ROOT, run_mpi, with_reasons
from topompi.mpi.dispatch.counters import CallCounters
from topompi.mpi.launcher import launch, program_of

PLACED = ("--topology", "xgft:2,2,2;1,1,1", "--hosts", "h[0000,0002,0005]")

PROGRAM = """\
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
comms = comm, comm.Split(0, comm.rank), comm.Dup()
kinds = {"topompi" if hasattr(one, "_topompi_lineage") else "mpi4py" for one in comms}
total = comm.allreduce(comm.rank)
if comm.rank == 0:
    print(sorted(kinds), sys.argv[1:], __name__, sys.path[0], total, __file__.endswith("program.py"))
if "exit" in sys.argv:
    sys.exit(7)
if "raise" in sys.argv and comm.rank == 1:
    raise ValueError("rank 1 alone")
comm.Barrier()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_program_finds_its_world_replaced(program):
    done = run_mpi(2, "-m", "topompi", program, "--verbose", "a b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"['topompi'] ['--verbose', 'a b'] __main__ {program.parent} 1 True\n"
    assert not done.stderr


def test_exit_codes_are_the_programs(program):
    assert run_mpi(2, "-m", "topompi", program, "exit").returncode == 7


def test_an_exception_on_one_rank_ends_all(program):
    """The others wait in a barrier: without an abort the run would not end."""
    done = run_mpi(2, "-m", "topompi", program, "raise", timeout=45)
    assert done.returncode != 0
    assert "ValueError: rank 1 alone" in done.stderr
    line = 1 + PROGRAM.splitlines().index('    raise ValueError("rank 1 alone")')
    assert f'line {line}, in <module>\n    raise ValueError("rank 1 alone")' in done.stderr


def test_modules_code_and_standard_input():
    code = "import sys, topompi; from mpi4py import MPI; print(isinstance(MPI.COMM_WORLD, topompi.Intracomm), sys.argv)"
    done = run_mpi(1, "-m", "topompi", "-c", code, "x")
    assert done.stdout == "True ['-c', 'x']\n", done.stderr
    done = run_mpi(2, "-m", "topompi", *PLACED, "-m", "mpi4py.bench", "helloworld")
    assert "Hello, World! I am process 1 of 2" in done.stdout, done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "topompi", "-"], input=code, capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert done.stdout == "True ['-']\n", done.stderr


def test_freeing_and_pickling_the_world_do_as_mpi4py_has_it():
    """It outlives ``free``, another handle of it becomes null, and both kinds of handle are pickled."""
    code = (
        "from mpi4py import MPI; import pickle; comm = MPI.COMM_WORLD; other = type(comm)(comm)\n"
        "other.free(); comm.free(); plain = MPI.Intracomm(comm); again = pickle.loads(pickle.dumps(plain))\n"
        "print(bool(other), pickle.loads(pickle.dumps(comm)) is comm, again == comm, again is comm, comm.allreduce(1))"
    )
    for launcher in (("mpi4py",), ("topompi", *PLACED)):
        done = run_mpi(2, "-m", *launcher, "-c", code)
        assert done.stdout == "False True True False 2\n" * 2, done.stderr


def test_verbose_tells_what_ran_and_why():
    code = (
        "from mpi4py import MPI; import numpy as np; comm = MPI.COMM_WORLD\n"
        "for _ in range(3): comm.Bcast(np.zeros(100)); comm.Ibarrier().Wait(); comm.allgather(1)\n"
        "comm.Alltoall(np.zeros(comm.size, 'i1'), np.zeros(comm.size, 'i1'))"
    )
    done = run_mpi(4, "-m", "topompi", "--verbose", *PLACED, "-c", code)
    lines = done.stderr.splitlines()
    assert "virtual placement, 4 ranks on 3 hosts" in lines[0], done.stderr
    assert max(map(len, lines[1:])) <= 100
    rows = {line.split()[0]: line for line in with_reasons(done.stderr)[2:]}
    assert set(rows) == {"Alltoall", "Bcast", "Ibarrier", "allgather"}, done.stderr
    assert rows["Bcast"].split()[1:4] == ["512-1023", "3", "2,400"]
    assert rows["Alltoall"].split()[1:4] == ["1", "1", "1"]
    assert "us" in rows["Bcast"]
    assert rows["Ibarrier"].endswith("the MPI library's always: a schedule goes on only inside calls of ours")
    assert rows["allgather"].endswith("ranks do not know of each other: mpi4py's own; arrays go by topompi")
    assert re.search("a virtual placement.*; on the real network native would run: no schedule ", rows["Alltoall"])
    assert "calls between two ranks: the MPI library's, not counted" in lines[0]


def test_counters_sum_up_by_class_and_algorithm():
    counters = CallCounters(True)
    for size, algorithm in ((8, "native"), (15, "native"), (16, "native"), (9, "leaders")):
        counters.count("Bcast", size, algorithm, "why", 2e-6, size * 1e-6)
    assert [line.split() for line in counters.lines()[1:]] == [
        ["Bcast", "8-15", "1", "9", "leaders", "2.0", "us", "9.0", "us", "why"],
        ["Bcast", "8-15", "2", "23", "native", "2.0", "us", "11.5", "us", "why"],
        ["Bcast", "16-31", "1", "16", "native", "2.0", "us", "16.0", "us", "why"],
    ]


def test_long_reasons_stand_once_below_a_table_that_a_terminal_shows_and_han_is_explained():
    counters = CallCounters(True)
    reason = (
        "native: no schedule has proved itself; cost model: han: inside hosts and between them, 16 segments of 64 KiB"
    )
    for size in (1 << 20, 1 << 25, 1 << 30):
        counters.count("Ineighbor_alltoallw", size, "lanes_transposed/64K", reason, 1.5, 2.5)
    counters.count("Bcast", 8, "native", "rule 1")
    heading, bcast, *rows = counters.lines()
    assert max(map(len, (heading, *rows))) <= 100
    assert bcast.endswith("[1]")  # the other rows leave no room for its reason
    assert [row.split()[1] for row in rows[:3]] == ["1M-2M", "32M-64M", "1G-2G"]
    assert [row.split()[-1] for row in rows[:3]] == ["[2]"] * 3
    assert " ".join(line.strip() for line in rows[3:-1]) == f"[1] rule 1 [2] {reason}"
    assert rows[-1].startswith("han: Open MPI's hierarchical module")


def test_a_topology_that_cannot_be_read_is_one_line():
    done = run_mpi(2, "-m", "topompi", "--topology", "/nowhere", "-c", "from mpi4py import MPI; print('never')")
    assert done.returncode == 1
    assert "never" not in done.stdout
    assert done.stderr.count("topompi: /nowhere: expecting a file") == 1
    assert "Traceback" not in done.stderr


def test_commands_are_still_commands(tmp_path):
    (tmp_path / "topology").mkdir()  # a folder that is called like a command
    for words, told in (
        (["topology", "show", "xgft:2,2;1,1"], "4 hosts"),
        (["--version"], "topompi 0."),
        (["--help"], "usage: mpirun -n N topompi run [options] PROGRAM"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "topompi", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert told in done.stdout, done.stdout + done.stderr


def test_what_is_neither_program_nor_command_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "topompi", "nosuch.py"], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert done.returncode == 1  # as natively
    assert "nosuch.py" in done.stderr


def test_the_first_word_that_is_no_option_counts():
    assert program_of(["--verbose", "--hosts", "a,b", "run.py", "--verbose"]) == "run.py"
    assert program_of(["--topology=x", "-m", "pkg"]) == "-m"
    assert program_of(["--debug", "topology"]) == ""  # an option of the commands'
    assert program_of([]) == ""
    assert program_of(["--hosts"]) == ""
    with pytest.raises(SystemExit):
        launch(["-c"])


ORDER = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
import os
before = comm.allgather(int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", -1))))
if comm.rank == 0:
    print(before)
"""


def test_the_world_is_ordered_for_a_graph_and_keeps_its_order_without_a_fitting_one(tmp_path):
    """Ranks 0 and 2 exchange all, as 1 and 3 do; two a host. Else all pairs weigh the same, with a warning."""
    script, graph = tmp_path / "order.py", tmp_path / "graph"
    script.write_text(ORDER)
    graph.write_text("0 2 900\n1 3 900\n")
    placed = {"TOPOMPI_HOSTS": "a,a,b,b", "TOPOMPI_FALLBACK": "silent"}
    done = run_mpi(4, "-m", "topompi", "--map", graph, script, env=placed)
    assert done.returncode == 0, done.stderr
    order = json.loads(done.stdout)
    assert {frozenset(order[0::2]), frozenset(order[1::2])} == {frozenset((0, 1)), frozenset((2, 3))}, done.stderr
    graph.write_text("0 2 900\n1 9 900\n")
    for path, problem in ((graph, "holds at least 10 ranks, but 4 were asked for"), (tmp_path / "none", "none")):
        done = run_mpi(4, "-m", "topompi", "--map", path, script, env=placed)
        assert json.loads(done.stdout) == [0, 1, 2, 3]
        assert problem in done.stderr
        assert "all pairs of ranks weigh the same: the given order stays" in done.stderr
