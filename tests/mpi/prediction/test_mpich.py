"""MPICH's own messages against the model of its choices."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from tests.prediction.test_mpich import network
from tests.support import ROOT, mpirun, run_mpi
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.prediction.libraries import CallShape
from topompi.mpi.prediction.libraries.mpich import MPICH
from topompi.mpi.prediction.libraries.mpich_forced import ALGORITHMS, forced
from topompi.mpi.prediction.librarychoices import LibraryChoice
from topompi.mpi.tuning.mpich_tables import MPICHTableError, MPICHTables, find_library, write_compositions, write_table

PROGRAMS = ROOT / "tests" / "programs"


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
    method, nbytes, _, commutes = call
    decision = MPICH().decide(CallShape(method, nbytes, np.array(hosts), commutes, item=8))
    return None if decision is None else messages(decision, call, hosts)


def messages(decision, call, hosts):
    """Messages and bytes from each rank to each on another host, shape (2, p, p)."""
    _, nbytes, root, _ = call
    schedule, size = decision.schedule(network(hosts), root), len(hosts)
    table, whole = np.zeros((2, size, size)), nbytes / size if decision.collective == "reduce_scatter" else nbytes
    pair = schedule.source, schedule.destination
    np.add.at(table[0], pair, 1)
    np.add.at(table[1], pair, schedule.count * (whole / schedule.blocks))
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


# --- MPICH runs what its tuning files say: its messages are those of the schedules of the chosen algorithms.


TABLE, COMPOSITIONS = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"


CLIQUES = {"MPIR_CVAR_CLIQUES_BY_BLOCK": "1"}


def tables():
    if "--allow-run-as-root" in mpirun():
        pytest.skip("this Python runs with Open MPI")
    try:
        return MPICHTables.read(find_library())
    except MPICHTableError as error:
        pytest.skip(str(error))


def choices_of(ranks):
    """Each algorithm of each method at a size of its own, among sizes that are left to the library."""
    question = {method: CallShape(method, 1 << 20, np.arange(ranks)) for method in ALGORITHMS}
    for method in ALGORITHMS:
        numbers = {number: segment for number, segment, _ in reversed(list(forced(question[method])))}
        for place, (number, segment) in enumerate([(0, 0), *sorted(numbers.items()), (0, 0)]):
            yield LibraryChoice(method, 512 * ranks << place, number, segment, "", 1.0, 1.0)


@pytest.mark.parametrize(("ranks", "hosts", "of"), [(8, 8, 8), (7, 7, 7), (8, 4, 8), (8, 8, 9)])
def test_mpich_runs_the_algorithms_that_the_files_say(ranks, hosts, of, tmp_path):
    """The last case has a file for another number of ranks: MPICH chooses by its own rules."""
    found, chosen = tables(), list(choices_of(ranks))
    (tmp_path / "table.json").write_text(write_table(found, chosen, of))
    (tmp_path / "over.json").write_text(write_compositions(found, chosen, of))
    calls = [
        (one.method, one.nbytes, root, True) for one in chosen for root in ((0, 3) if one.method == "Bcast" else (0,))
    ]
    host = np.repeat(np.arange(hosts), ranks // hosts)
    where = {"MPIR_CVAR_NOLOCAL": "1"} if ranks == hosts else CLIQUES | {"MPIR_CVAR_NUM_CLIQUES": str(hosts)}
    files = {TABLE: str(tmp_path / "table.json"), COMPOSITIONS: str(tmp_path / "over.json")}
    sent = recorded(calls, ranks, tmp_path, **where, **files)
    by_size = {(one.method, one.nbytes): one for one in chosen}
    for call, table in zip(calls, sent, strict=True):
        one, question = by_size[call[:2]], CallShape(call[0], call[1], host, item=8)
        decision = MPICH().decide(question)
        if one.number and of == ranks:
            decision = next(d for number, size, d in forced(question) if (number, size) == (one.number, one.segment))
        apart = ~np.equal.outer(host, host)
        assert np.allclose(messages(decision, call, host), table * apart), (call, one.number)
    assert json.loads((tmp_path / "table.json").read_text()) != found.algorithms
