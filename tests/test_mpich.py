"""MPICH's choices: the model's answers, schedules that do what MPI defines, and MPICH's own messages."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.networks import job
from tests.support import ROOT, mpirun, run_mpi
from topompi.execution.specs import CALLS
from topompi.prediction.libraries import Question, model_of
from topompi.prediction.libraries.mpich import MPICH, TABLES
from topompi.schedules import check

PROGRAMS = ROOT / "tests" / "programs"
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")
METHODS = [name for name, spec in CALLS.items() if spec.collective in TABLES]


def network(hosts):
    """Ranks on hosts, all hosts on one switch, as a library sees them."""
    placed = job("XGFT(1; 16; 1)", range(max(hosts) + 1), [1] * (max(hosts) + 1))
    return placed.part(np.array(hosts))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_schedules_do_what_mpi_defines_for_every_size_root_and_placement(method, data):
    ranks = data.draw(st.integers(1, 16))
    hosts = data.draw(st.sampled_from([list(range(ranks)), [rank % 3 for rank in range(ranks)]]))
    nbytes = data.draw(st.sampled_from([8, 200, 256, 264, 2048, 4096, 12288, 12296, 2**17, 2**20, 2**23]))
    commutes = data.draw(st.booleans())
    question = Question(method, nbytes, np.array(hosts), commutes, item=8)
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
    decision = MPICH().decide(Question(method, nbytes, np.arange(ranks), item=8))
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


SIZES = {  # bytes around the sizes at which an algorithm changes
    "Bcast": (64, 12000, 12288, 12289, 524288, 524289),
    "Gather": (8, 2000, 40000),
    "Gatherv": (8, 40000),
    "Scatter": (8, 2000, 40000),
    "Scatterv": (8, 40000),
    "Reduce": (8, 32, 2048, 2056, 100000),
    "Allreduce": (8, 16, 32, 2048, 100000),
    "Reduce_scatter_block": (64, 524160, 524288),
    "Reduce_scatter": (64, 524160, 524288),
    "Scan": (8, 100000),
    "Exscan": (8, 100000),
    "Alltoall": (8, 256, 264, 32768, 32776),
    "Alltoallv": (8, 256, 32768, 33000),
}


def cells(ranks):
    """Calls: method, bytes, root, whether the operation commutes. What is divided, is divided evenly."""
    power = 1 << ranks.bit_length() - 1
    totals = (8 * ranks, 81912, 81928, 524280, 524296)
    blocks = tuple(nbytes // 8 // ranks * 8 for nbytes in totals)
    found = []
    for method, sizes in {**SIZES, "Allgather": blocks, "Allgatherv": blocks}.items():
        spec = CALLS[method]
        unit = {"bcast": 8 * ranks, "reduce_scatter": 8 * ranks}.get(spec.collective, 8)
        for nbytes in sizes:
            step = 8 * power if nbytes >= 8 * power and spec.collective in ("reduce", "allreduce") else unit
            for root in sorted({0, 1, ranks // 2, ranks - 1}) if spec.rooted else (0,):
                for commutes in (True, False) if spec.reduces else (True,):
                    found.append((method, -(-nbytes // step) * step, root, commutes))
    return found


def predicted(call, hosts):
    """Messages and bytes from each rank to each on another host, shape (2, p, p); None where the model is silent."""
    method, nbytes, root, commutes = call
    decision = MPICH().decide(Question(method, nbytes, np.array(hosts), commutes, item=8))
    if decision is None:
        return None
    schedule, size = decision.schedule(network(hosts), root), len(hosts)
    message = nbytes / size if decision.collective == "reduce_scatter" else nbytes
    table = np.zeros((2, size, size))
    pair = schedule.source, schedule.destination
    np.add.at(table[0], pair, 1)
    np.add.at(table[1], pair, schedule.count * (message / schedule.blocks))
    return np.where(np.equal.outer(hosts, hosts), 0, table)


def recorded(calls, ranks, folder, **environment):
    """What MPICH sent, shape (calls, 2, p, p); skips the test without MPICH over UCX or a compiler."""
    version = subprocess.run([*mpirun(), "--version"], capture_output=True, text=True, timeout=30).stdout
    if "Open MPI" in version or shutil.which("cc") is None:
        pytest.skip("needs MPICH and a C compiler")
    counter, asked, found = folder / "counter.so", folder / "calls.json", folder / "messages.npy"
    source = PROGRAMS / "count_messages.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True, timeout=60)
    asked.write_text(json.dumps(calls))
    env = {"LD_PRELOAD": str(counter), "MPIR_CVAR_CH4_NETMOD": "ucx", **environment}
    done = run_mpi(ranks, PROGRAMS / "recorded_messages.py", asked, found, env=env)
    if "no messages by UCX" in done.stderr:
        pytest.skip("needs MPICH over UCX")
    assert done.returncode == 0, done.stderr[-4000:]
    return np.load(found)


@pytest.mark.parametrize(
    "ranks", [2, 7, 8, *(pytest.param(more, marks=pytest.mark.long) for more in (3, 6, 9, 11, 16))]
)
def test_mpich_sends_the_predicted_messages_where_each_rank_has_a_host(ranks, tmp_path):
    calls = cells(ranks)
    table = recorded(calls, ranks, tmp_path, MPIR_CVAR_NOLOCAL="1")
    wrong, silent = compared(calls, table, list(range(ranks)))
    assert not wrong
    # No schedule of ours is MPICH's reduce-scatter for operations that do not commute, for other than powers of two.
    assert {call[::3] for call in silent} <= {("Reduce_scatter", False), ("Reduce_scatter_block", False)}
    assert not silent or ranks.bit_count() > 1


@pytest.mark.parametrize(
    ("ranks", "cliques"),
    [(8, 3), *(pytest.param(*more, marks=pytest.mark.long) for more in ((6, 2), (12, 5), (16, 4)))],
)
@pytest.mark.parametrize("blocks", [True, False])
def test_mpich_sends_the_predicted_messages_between_hosts_of_several_ranks(ranks, cliques, blocks, tmp_path):
    """What ranks of a host exchange goes through shared memory, and is not recorded."""
    calls = cells(ranks)
    environment = {"MPIR_CVAR_NUM_CLIQUES": str(cliques), "MPIR_CVAR_CLIQUES_BY_BLOCK": str(int(blocks))}
    parts = np.array_split(np.arange(ranks), cliques)
    hosts = np.repeat(np.arange(cliques), [len(part) for part in parts]) if blocks else np.arange(ranks) % cliques
    wrong, _ = compared(calls, recorded(calls, ranks, tmp_path, **environment), hosts.tolist())
    assert not wrong


def compared(calls, table, hosts):
    """The calls that sent other messages than predicted, and those of which the model says nothing."""
    forecast = [predicted(call, hosts) for call in calls]
    apart = ~np.equal.outer(hosts, hosts)
    pairs = zip(calls, forecast, table, strict=True)
    wrong = [call for call, wanted, sent in pairs if wanted is not None and not np.allclose(wanted, sent * apart)]
    return wrong, [call for call, wanted in zip(calls, forecast, strict=True) if wanted is None]
