"""The study of a real Slurm without a Slurm: its list of jobs, the figures of runs, the page, and a user's script."""

import pytest

from osu_like_bench.emulate import emulated_fabric
from studies.slurm import analysis
from studies.slurm.jobs import BYTES, KINDS, bound, drawn, kinds_of, messages, script
from topompi.topology import compute_routes
from topompi.views.cluster import cluster_of

TREE = 4, 20e6, 40e6  # hosts per leaf switch, rates of links in bits/s


def test_each_rank_sends_to_its_neighbours_in_a_grid_by_rows():
    sent = [*messages("stencil", 6)]  # 2 x 3, periodic
    assert [other for rank, other in sent if rank == 1] == [2, 0, 4, 4]
    assert sorted(messages("stencil", 2)) == [(0, 1), (0, 1), (1, 0), (1, 0)]
    assert len({*messages("alltoall", 5)}) == 20


def test_the_busiest_link_bounds_a_round():
    message = 8 * BYTES / 20e6
    assert bound("alltoall", range(4), *TREE) == pytest.approx(3 * message)
    assert bound("alltoall", range(8), *TREE) == pytest.approx(16 * message / 2)  # over the trunk of twice the rate
    assert bound("alltoall", [0, 1, 4, 5, 8, 9, 12, 13], *TREE) == pytest.approx(7 * message)
    assert bound("alltoall", [0, 1, 2, 3], 2, 20e6, 20e6) == pytest.approx(4 * message)  # two hosts share a cable
    assert bound("stencil", [0] * 4, *TREE) == 0  # all inside one host


def test_the_list_has_each_kind_as_often_as_said_and_takes_the_seconds_by_the_rates():
    jobs = drawn(8, 5.5, 1.0, *TREE)
    assert jobs == drawn(8, 5.5, 1.0, *TREE) != drawn(9, 5.5, 1.0, *TREE)
    assert {kind: sum(job.kind == kind for job in jobs) for kind in KINDS} == {kind: KINDS[kind][0] for kind in KINDS}
    assert all(job.nodes in KINDS[job.kind][1] for job in jobs)
    assert all(abs(job.seconds - 5.5) < 0.5 for job in jobs if job.rounds)
    assert all(2.75 <= job.seconds <= 5.5 for job in jobs if not job.rounds)
    assert jobs[0].arrival == 0
    assert [job.arrival for job in jobs] == sorted(job.arrival for job in jobs)
    kinds = [(job.kind, job.nodes) for job in kinds_of(jobs)]
    assert kinds == sorted({(job.kind, job.nodes) for job in jobs if job.rounds})


def test_a_compute_job_sleeps_and_the_others_exchange():
    jobs = drawn(8, 5.5, 1.0, *TREE)
    talking, quiet = (next(job for job in jobs if bool(job.rounds) is talks) for talks in (True, False))
    assert f"mpirun --map-by ppr:1:node exchange {talking.kind} {BYTES} {talking.rounds} ||" in script(
        talking, "exchange", "mpirun --map-by"
    )
    assert f"\nsleep {quiet.seconds} ||" in script(quiet, "exchange", "mpirun --map-by")
    assert f" --nodes={quiet.nodes} " in script(quiet, "exchange", "mpirun --map-by")


def line(number: int, nodes: str, begin: int, end: int) -> str:
    when = [f"2026-11-26T14:00:{second:02}" for second in (begin, end)]
    return f"JobId={number} JobState=COMPLETED StartTime={when[0]} EndTime={when[1]} NodeList={nodes} NodeCnt=2"


@pytest.fixture
def cluster():
    return cluster_of(compute_routes(emulated_fabric("2x4")))


@pytest.mark.parametrize(
    ("second", "pairs"),
    [
        (line(2, "h[0001,0005]", 4, 9), [("1", "2")]),  # both cross between the leaf switches
        (line(2, "h[0001,0005]", 5, 9), []),  # starts in the second in which the first ends
        (line(2, "h[0001-0002]", 0, 9), []),  # on one leaf switch
        (line(2, "(null)", 0, 9), []),  # never started
    ],
)
def test_jobs_share_links_if_they_run_in_the_same_second(cluster, second, pairs):
    jobs = analysis.completed("\n".join([line(1, "h[0000,0004]", 0, 5), second]))
    assert analysis.sharing_pairs(jobs, cluster) == pairs
