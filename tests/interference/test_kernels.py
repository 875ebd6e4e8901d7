"""Traces of kernels and of communication graphs, and jobs as users name them."""

import re

import numpy as np
import pytest

from tests.netsim.test_netsim import RATE, one_switch
from tests.support import refusal
from topompi.machine.interference import InterferenceError
from topompi.machine.interference.kernels import KERNELS, make_kernel, trace_of
from topompi.machine.interference.specs import read_jobs
from topompi.machine.interference.traces import read_trace, trace_of_graph
from topompi.mapping import CommunicationGraph
from topompi.mpi.profile import Profile, write_profile
from topompi.mpi.profile.recording import RankRows
from topompi.netsim import COMPUTE, run

GRIDS = {"stencil3d": "2x2x2", "stencil4d": "2x2x2x1", "fft3d": "2x4", "p3dfft": "2x4", "pcg": "2x2x2", "stencil": "8"}


def seconds(found):
    return run(one_switch(found.size, 0.0), [found.on(range(found.size))]).rank_seconds


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("periodic", [False, True])
def test_a_kernels_trace_sends_the_bytes_of_its_graph_in_each_iteration(name, periodic):
    if periodic and not KERNELS[name].stencil:
        return
    ranks = 16 if name in ("cg", "bt", "mg") else 8
    kernel = make_kernel(name, range(ranks), GRIDS.get(name), periodic)
    found = trace_of(kernel, kernel.ranks if kernel.measured else kernel.usual_size, iterations=3, burst=1e-3)
    messages = found.ranks.messages
    graph = kernel.graph  # without sums, and of a stencil with 1 for a face
    sent = np.bincount(messages.source * ranks + messages.destination, messages.nbytes, ranks**2).reshape(ranks, ranks)
    source = np.repeat(np.arange(ranks), np.diff(graph.offsets))
    expected = np.zeros((ranks, ranks))
    size = {"stencil": 65536}.get(name, 8) if kernel.stencil else 1
    np.add.at(expected, (source, graph.targets), 3.0 * graph.volume * size)
    np.fill_diagonal(expected, 0)
    sums = 3 * 2 * 8 * np.isin(np.arange(8)[:, None] ^ np.arange(8), [1, 2, 4]) if name == "pcg" else 0
    assert (sent == expected + sums).all()
    assert found.ranks.amount[found.ranks.kind == COMPUTE].sum() == pytest.approx(ranks * 3e-3)


def test_an_alltoall_of_all_ranks_takes_the_bytes_of_a_hosts_link():
    found = trace_of(make_kernel("fft3d", range(8), "1x8"), 10**6, iterations=2, burst=0.5)
    assert seconds(found) == pytest.approx([2 * (0.5 + 7e6 / RATE)] * 8)


def test_a_graph_is_divided_among_iterations_of_a_burst_and_all_its_messages():
    graph = CommunicationGraph.from_arrays(3, [0, 1, 2, 2], [1, 2, 0, 2], [4 * 10**6, 0, 2 * 10**6, 5])
    found = trace_of_graph(graph, iterations=2, burst=1.0)
    assert found.ranks.messages.nbytes.tolist() == [2e6, 2e6, 1e6, 1e6]
    assert seconds(found)[1] == pytest.approx(2 + 4e6 / RATE)
    assert "no order of messages: 2 iterations of a burst and all messages at once" in found.notes
    assert "expecting iterations and a burst, got 0 and 0 s" in refusal(lambda: trace_of_graph(graph, iterations=0))


def test_the_form_of_a_trace_is_found_from_its_content(tmp_path):
    (tmp_path / "ti").write_text("0 send 1 7 10 6\n1 recv 0 7 10 6\n")
    (tmp_path / "goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 5\n}\n")
    (tmp_path / "graph").write_text("0 1 100\n1 0 200\n")
    found = {name: read_trace(tmp_path / name) for name in ("ti", "goal", "graph")}
    assert {name: one.size for name, one in found.items()} == {"ti": 2, "goal": 1, "graph": 2}
    assert found["graph"].ranks.messages.nbytes.tolist() == [100, 200]


def test_a_profile_is_a_job(tmp_path):
    rows = [RankRows.of_rows(rank, [(0, 1 - rank, 3, 6_000_000)]) for rank in range(2)]
    write_profile(Profile(2, "by hand", of_rank=rows), tmp_path / "p.topoprof")
    (job,) = read_jobs([f"P={tmp_path}/p.topoprof@iterations=3,burst=0.5"])
    assert (job.name, job.nodes) == ("P", 2)
    assert job.trace.ranks.messages.nbytes.tolist() == [2e6] * 6
    assert seconds(job.trace) == pytest.approx([1.5 + 6e6 / RATE] * 2)


def test_a_job_is_a_name_a_kernel_or_file_and_options(tmp_path):
    (tmp_path / "t.txt").write_text("0 compute 1e9\n")
    jobs = read_jobs(
        [
            "FT=fft3d@grid=1x8,size=64K,iterations=5,burst=0.01,ppn=2,lane=3,copies=2",
            f"{tmp_path}/t.txt@flops=1e8,speed=10",
        ]
    )
    assert [(job.name, job.nodes, job.lane) for job in jobs] == [("FT-1", 4, 3), ("FT-2", 4, 3), ("t.txt", 1, 0)]
    program = jobs[0].on(np.array([7, 5, 3, 1]))
    assert program.hosts.tolist() == [7, 7, 5, 5, 3, 3, 1, 1]
    assert program.messages.nbytes.sum() == 5 * 56 * 65536
    assert jobs[2].on(np.array([0])).amount.tolist() == [1.0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pcg", "pcg: expecting ranks or grid of the kernel, got neither"),
        ("pcg@ranks=8,colour=red", "expecting options copies, ppn, .*, got 'colour'"),
        ("pcg@ranks=8,size=0", "size: expecting a number of bytes such as 64, 8K or 1M, got '0'"),
        ("pcg@ranks=0", "ranks: expecting a whole number of at least 1, got '0'"),
        ("pcg@ranks=8,burst=-1", "burst: expecting a number of at least 0, got '-1'"),
        ("pcg@ranks=8,speed=0", "speed: expecting a number above 0, got '0'"),
        ("pcg@ranks=8,ppn=3", "ppn: expecting a divisor of 8 ranks, got 3"),
        ("pcg@ranks=8,lane=15", "lane: expecting a lane below 15, got 15"),
        ("pcg@ranks=8,periodic=1", "periodic: expecting no value, got '1'"),
        ("pcg@ranks=8,grid=2x2x3", "--grid: expecting a grid of 8 ranks, got 2x2x3"),
        ("nothing-there", "nothing-there: no such file or directory"),
        ("", r"expecting \[NAME=\]WHAT\[@KEY=VALUE,\.\.\.\], got ''"),
    ],
)
def test_a_wrong_job_is_told_what_was_expected(text, problem):
    assert re.search(problem, refusal(read_jobs, [text]))


def test_two_jobs_of_one_name_are_refused():
    text = refusal(read_jobs, ["pcg@ranks=8", "pcg@ranks=4"], error=InterferenceError)
    assert "jobs: expecting different names, got pcg twice; NAME=... before a job names it" in text
