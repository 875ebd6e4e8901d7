"""Models of libraries against the libraries: predicted messages equal the messages that the library reports."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from osu_like_bench.emulate import Emulated, LaunchOptions
from osu_like_bench.emulate.peers import PEERS
from tests.emulation import needs_root, private_state  # noqa: F401 - a fixture
from tests.prediction.test_library_models import METHODS
from tests.schedules.test_registry import placed
from tests.support import ROOT, run_mpi
from topompi.mpi.prediction.libraries import CallShape, model_of

RECORD = ROOT / "tests/programs/recordpatterns.py"
ITEM = 8  # bytes
ROOTS = ("Bcast", "Gather", "Scatter", "Reduce")
REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block")
# Blocks of these divide a vector among ranks: sizes are such that all parts are equal.
DIVIDED = ("Bcast", "Allreduce", "Reduce_scatter", "Reduce_scatter_block")


def library():
    """The model of the Open MPI that this Python runs with."""
    from mpi4py import MPI

    if MPI.get_vendor()[0] != "Open MPI":
        pytest.skip("this Python runs with another library")
    model = model_of(MPI.Get_library_version(), {})
    assert model is not None, MPI.Get_library_version()
    return model


def question(rank_host, call):
    """What is asked of a call: its method, bytes, bytes of an item, whether it commutes, its root."""
    return CallShape(call[0], call[1], rank_host, call[3], call[2])


def sizes(method, ranks):
    """From some bytes to a megabyte, or to as much as all blocks need."""
    unit = ITEM * math.lcm(ranks, 1 << ranks.bit_length() - 1)
    most = 20 if method in ("Bcast", *REDUCTIONS, "Scan", "Exscan") else 17
    every = (1 << power for power in range(3, most + 1))
    few = [ITEM] if method in ("Bcast", "Allreduce") else []  # fewer items than ranks
    return dict.fromkeys(few + [-(-size // unit) * unit if method in DIVIDED else size for size in every])


def calls(model, rank_host):
    """Calls of every method: the first and the last size for which each algorithm runs, for some roots."""
    ranks, found = len(rank_host), []
    for method in METHODS:
        for commutative in (True, False) if method in REDUCTIONS else (True,):
            some = [(method, size, ITEM, commutative, 0) for size in sizes(method, ranks)]
            decided = [str(model.decide(question(rank_host, call))) for call in some]
            changes = [one != other for one, other in pairwise(["", *decided, ""])]
            chosen = [call for place, call in enumerate(some) if changes[place] or changes[place + 1]]
            found += chosen
            if method in ROOTS:
                found += [(*call[:4], ranks // 2) for call in chosen]
    return found


def predicted(decision, network, call):
    """Messages from each rank to each, and their bytes, each shape (p, p)."""
    method, nbytes, _, _, root = call
    schedule = decision.schedule(network, root)
    parts = schedule.size if decision.collective == "reduce_scatter" else 1
    message = schedule.messages
    pair = schedule.source[message], schedule.destination[message]
    count, size = np.zeros((2, schedule.size, schedule.size))
    np.add.at(count, pair, 1)
    np.add.at(size, pair, schedule.count[message] * (nbytes / (parts * schedule.blocks)))
    if decision.says == "tuned: linear_sync" and method == "Gather":
        # Before a rank sends, the root tells it to, with nothing in it; behind the block comes a message without any.
        others = np.arange(schedule.size) != root
        count[root, others] += 1
        count[others, root] += 1
    return np.stack((count, size))


def compared(model, rank_host, asked, recorded):
    """Calls whose messages are not those predicted; recorded ones by call, count or size, source and destination."""
    ranks = len(rank_host)
    network = replace(placed("XGFT(1; 24; 1)", range(ranks), [1] * ranks), rank_host=rank_host)
    wrong = []
    for call, counted in zip(asked, recorded, strict=True):
        decision = model.decide(question(rank_host, call))
        wanted = predicted(decision, network, call)
        if decision.says.startswith("han") and "ather" in call[0]:
            # Gathers inside may have messages without bytes, see ``predicted``.
            counted[0] -= (counted[0] > wanted[0]) & (counted[0] == wanted[0] + 1)
        if not np.array_equal(counted, wanted):
            wrong.append((call, decision.says))
    return wrong


def read(text, ranks):
    """What the ranks recorded, without messages of a rank to itself: by call, count or size, source, destination."""
    recorded = np.moveaxis(np.array(json.loads(text)), 0, 2)
    return recorded * (1 - np.eye(ranks, dtype=np.int64))


@pytest.mark.parametrize("ranks", [3, 8, *(pytest.param(p, marks=pytest.mark.long) for p in (2, 4, 7, 12, 17))])
def test_on_one_host_each_rank_sends_to_each_what_is_predicted(ranks, tmp_path):
    model, rank_host = library(), np.zeros(ranks, dtype=np.int64)
    asked = calls(model, rank_host)
    (tmp_path / "calls.json").write_text(json.dumps(asked))
    environment = {"OMPI_MCA_pml_monitoring_enable": "1"}
    done = run_mpi(ranks, RECORD, tmp_path / "calls.json", timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    wrong = compared(model, rank_host, asked, read(done.stdout, ranks))
    assert not wrong, f"{len(wrong)} of {len(asked)}: {wrong[:5]}"


SHORT = (64, 1024, 8192, 65536)
SEGMENTED = (512, 4096, 32768, 65536, 131072, 5 * 65536 + 8192, 1 << 20)


def over_hosts(rank_host):
    """Calls with one segment and with several, for some roots."""
    ranks, found = len(rank_host), []
    for method in METHODS:
        unit = 8 * ITEM * ranks if method.startswith("Reduce_scatter") else ITEM
        for size in SEGMENTED if method in ("Bcast", "Reduce", "Allreduce") else SHORT:
            call = method, -(-size // unit) * unit, ITEM
            found += [(*call, True, root) for root in ((0, 1, ranks - 1) if method in ROOTS else (0,))]
            found += [(*call, False, 0)] if method in REDUCTIONS else []
    return found


@needs_root
@pytest.mark.parametrize(
    "hosts",
    [
        [0, 0, 1, 1, 2, 2],
        pytest.param([0, 1, 2, 3, 4, 0, 1, 2, 3, 4], marks=pytest.mark.long),
        pytest.param([0, 0, 0, 0, 1, 1, 1, 1], marks=pytest.mark.long),
        pytest.param([0, 1, 0, 1], marks=pytest.mark.long),
    ],
)
@pytest.mark.usefixtures("private_state")
def test_on_hosts_with_several_ranks_each_rank_sends_to_each_what_is_predicted(hosts, tmp_path, monkeypatch):
    model, rank_host = library(), np.array(hosts)
    plain = PEERS["openmpi"]
    options = ["ob1,monitoring" if word == "ob1" else word for word in plain.options]
    monitored = replace(plain, options=(*options, "--mca", "pml_monitoring_enable", "1"))
    monkeypatch.setitem(PEERS, "openmpi", monitored)
    asked = over_hosts(rank_host)
    # In the first call of each kind hosts get to know one another.
    first = [(method, 64 * ITEM * len(hosts), ITEM, True, 0) for method in METHODS]
    (tmp_path / "calls.json").write_text(json.dumps(first + asked))
    with Emulated(str(max(hosts) + 1)) as network:
        names = [network.fabric.hosts[host] for host in hosts]
        done = network.run([str(RECORD), str(tmp_path / "calls.json")], LaunchOptions(hosts=names, timeout=120))
    assert done.returncode == 0, done.stderr
    wrong = compared(model, rank_host, asked, read(done.stdout, len(hosts))[len(first) :])
    assert not wrong, f"{len(wrong)} of {len(asked)}: {wrong[:5]}"
