"""Readers of traces: SimGrid's time-independent traces and GOAL, against exporters, closed forms and SimGrid itself."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from studies.simgrid import smpi
from studies.simgrid.traces import write_traces
from tests.netsim.test_netsim import RATE, one_switch
from tests.support import refusal
from topompi.machine.interference import InterferenceError
from topompi.machine.interference.traces import read_goal, read_simgrid
from topompi.machine.interference.traces.collectives import ALGORITHMS, ALL_TO_EACH, _one_switch, steps_of
from topompi.machine.interference.traces.simgridcalls import TYPES
from topompi.netsim import COMPUTE, RECEIVE, SEND, Tables, run
from topompi.network import Tables as Network
from topompi.schedules import make
from topompi.schedules.exports.goal import write_goal
from topompi.views.program import program_of

NBYTES = 10**6
SECONDS = NBYTES / RATE  # of a message alone
pairwise = pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
simgrid = pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid's smpirun is not here")


def trace(tmp_path, *lines, **about):
    (tmp_path / "t.txt").write_text("".join(f"{line}\n" for line in lines))
    return read_simgrid(tmp_path / "t.txt", **about)


def goal(tmp_path, text, **about):
    (tmp_path / "t.goal").write_text(text)
    return read_goal(tmp_path / "t.goal", **about)


def seconds(found, **about):
    return run(one_switch(found.size, 0.0), [found.on(range(found.size), **about)]).rank_seconds


def bytes_between(found):
    messages, table = found.ranks.messages, np.zeros((found.size, found.size))
    np.add.at(table, (messages.source, messages.destination), messages.nbytes)
    return table


# ---- SimGrid ----


def test_flops_become_seconds_and_a_speed_divides_bursts_alone(tmp_path):
    found = trace(tmp_path, "0 init", "0 compute 2e9", f"0 send 1 7 {NBYTES} 6", f"1 recv 0 7 {NBYTES} 6", flops=1e9)
    assert seconds(found) == pytest.approx([2 + SECONDS] * 2)
    assert seconds(found, speed=10.0) == pytest.approx([0.2 + SECONDS] * 2)


def test_a_burst_between_isend_and_waitall_overlaps_the_message(tmp_path):
    lines = [f"0 isend 1 7 {NBYTES} 6", f"0 compute {2 * SECONDS * 1e9}", "0 waitall 1", "0 compute 1e9"]
    found = trace(tmp_path, *lines, f"1 irecv 0 7 {NBYTES} 6", "1 waitall 1", flops=1e9)
    assert seconds(found) == pytest.approx([2 * SECONDS + 1, SECONDS])


def test_a_receive_that_was_posted_first_may_arrive_last(tmp_path):
    lines = [f"0 irecv 1 1 {NBYTES} 6", f"0 recv 1 2 {NBYTES} 6", f"0 send 1 3 {NBYTES} 6", "0 wait 1 0 1"]
    others = [f"1 send 0 2 {NBYTES} 6", f"1 recv 0 3 {NBYTES} 6", f"1 send 0 1 {NBYTES} 6"]
    assert seconds(trace(tmp_path, *lines, *others)) == pytest.approx([3 * SECONDS] * 2)


def test_a_receive_takes_the_bytes_of_its_send_and_may_have_more_room(tmp_path):
    found = trace(tmp_path, "0 send 1 7 1 0", "1 recv 0 7 100 0")
    assert found.ranks.amount.tolist() == [TYPES[0], TYPES[0]] == [8, 8]
    text = refusal(trace, tmp_path, "0 send 1 7 101 0", "1 recv 0 7 100 0")
    assert re.search(r"t\.txt:2: expecting room for 808 bytes, got 800$", text)


def test_a_receive_of_any_sender_gets_the_send_that_no_other_receive_takes(tmp_path):
    lines = ["0 recv -333 -444 50 6", "0 recv 2 5 50 6", "1 send 0 9 10 6", "2 send 0 5 20 6"]
    found = trace(tmp_path, *lines)
    assert bytes_between(found)[:, 0].tolist() == [0, 10, 20]
    assert found.notes == ("1 receives of any sender: each got the earliest send that no other receive takes",)


def test_a_send_and_a_sendrecv_match_in_order_because_the_latter_has_no_tag(tmp_path):
    found = trace(tmp_path, "0 sendRecv 500 1 500 1 1 1", "1 isend 0 4 500 1", "1 recv 0 9 500 1", "1 waitall 1")
    assert bytes_between(found).tolist() == [[0, 2000], [2000, 0]]
    assert "2 pairs of ranks whose tags do not agree" in found.notes[0]


def test_messages_to_oneself_and_to_no_rank_are_left_out_and_counted(tmp_path):
    lines = ["0 isend 0 1 5 6", "0 recv 0 1 5 6", "0 wait 0 0 1", "0 send -333 9 1 1", "0 compute 1e9"]
    found = trace(tmp_path, *lines, flops=1e9)
    assert found.ranks.kind.tolist() == [COMPUTE]
    notes = ("1 sends to no rank (MPI_PROC_NULL) left out", "1 messages of a rank to itself left out")
    assert found.notes == notes


@pairwise
@pytest.mark.parametrize(
    ("action", "total"),
    [
        ("barrier", lambda p: 0),
        ("bcast 100 1 6", lambda p: 100 * (p - 1)),
        ("reduce 100 0 1 6", lambda p: 100 * (p - 1)),
        ("alltoall 100 100 6 6", lambda p: 100 * p * (p - 1)),
        ("allgather 100 100 6 6", lambda p: 100 * p * (p - 1)),
        ("iallreduce 100 0 6", None),
        ("scan 100 0 6", None),
        ("exscan 100 0 6", None),
        ("gather 100 100 1 6 6", None),
        ("scatter 100 100 1 6 6", None),
    ],
)
def test_a_collective_becomes_the_messages_of_its_algorithm(tmp_path, size, action, total):
    found = trace(tmp_path, *(f"{rank} {action}" for rank in range(size)))
    moved = bytes_between(found).sum()
    assert moved == total(size) if total else moved >= 100 * (size - 1)
    assert (seconds(found) >= 0).all()


@pairwise
def test_collectives_with_a_size_per_rank_move_these_sizes(tmp_path, size):
    draw = np.random.default_rng(size)
    counts = draw.integers(0, 5, (size, size)) * 10
    each, lines = draw.integers(1, 9, size).tolist(), []
    for rank in range(size):
        row, column = (" ".join(map(str, part)) for part in (counts[rank], counts[:, rank]))
        blocks, none = " ".join(map(str, each)), " ".join(["0"] * size)
        mine = blocks if rank == 1 else none
        lines += [f"{rank} alltoallv 9 {row} 9 {column} 6 6", f"{rank} allgatherv {each[rank]} {blocks} 6 6"]
        lines += [f"{rank} gatherv {each[rank]} {mine} 1 6 6", f"{rank} scatterv {mine} {each[rank]} 1 6 6"]
    found = bytes_between(trace(tmp_path, *lines))
    expected = (counts * ~np.eye(size, dtype=bool)).sum() + sum(each) * (size - 1) + 2 * (sum(each) - each[1])
    assert found.sum() == expected


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["0 send 1 7 10 6"], r"t\.txt:1: expecting another rank in range\(1\), got 1"),
        (["0 send 1 7 10 6", "1 init"], r"t\.txt:1: expecting a receive for this message to rank 1, got none"),
        (["0 init", "1 recv 0 7 10 6"], r"t\.txt:2: expecting a send for this message from rank 0, got none"),
        (["0 init", "2 init"], r"t\.txt: expecting actions of ranks 0 to 1, got none of 1"),
        (["0 fly 1"], r"t\.txt:1: expecting an action of .*, got 'fly'"),
        (["0 init", "zero compute 1"], r"t\.txt:2: expecting RANK ACTION \.\.\., got 'zero compute 1'"),
        (["0 compute"], r"t\.txt:1: expecting flops as argument 1, got 0 arguments"),
        (["0 compute 1e"], r"t\.txt:1: flops: expecting a number, got '1e'"),
        (["0 compute -1"], r"t\.txt:1: flops: expecting a number from 0 to 1e18, got -1"),
        (["0 send 1.5 7 10 6"], r"t\.txt:1: peer: expecting a whole number, got '1\.5'"),
        (["0 send 1 7 10 -1"], r"t\.txt:1: expecting the number of a basic datatype, got -1 \(of a derived one"),
        (["0 bcast 5 3 6"], r"t\.txt:1: root: expecting a rank in range\(1\), got 3"),
        (["0 wait 0 1 7"], r"t\.txt:1: expecting the request of a message from 0 to 1 with tag 7, got none"),
        (["0 bcast 5 0 6", "1 init"], r"t\.txt:1: expecting a receive for this message to rank 1, got none"),
    ],
)
def test_a_wrong_line_is_named_with_its_file(tmp_path, lines, problem):
    assert re.search(problem, refusal(trace, tmp_path, *lines, error=InterferenceError))


def test_wrong_lines_are_skipped_and_counted_on_request(tmp_path):
    lines = ["0 compute 1e9", "0 fly 1", "0 compute x", "0 compute 1e9"]
    found = trace(tmp_path, *lines, partial=True, flops=1e9)
    assert found.ranks.amount.sum() == 2
    assert found.notes[0].startswith("2 lines skipped, the first ")


def test_wrong_messages_are_left_out_and_counted_on_request(tmp_path):
    lines = [
        "0 send 1 7 10 6",
        "0 isend 1 7 20 6",
        "0 waitall 1",
        "0 send 9 7 10 6",
        "0 send 1 8 50 6",
        "0 compute 1e9",
    ]
    found = trace(tmp_path, *lines, "1 recv 0 7 10 6", "1 recv x", "1 recv 0 8 5 6", partial=True, flops=1e9)
    assert found.ranks.messages.nbytes.tolist() == [10, 50]
    assert [note.partition(",")[0] for note in found.notes] == [
        "1 messages left out",
        "1 messages left out",
        "1 messages taken as they are",
        "1 lines skipped",
    ]
    assert seconds(found) == pytest.approx([1 + 60 / RATE, 60 / RATE])


@pytest.mark.parametrize("form", ["list", "folder"])
def test_a_trace_is_a_list_of_files_or_their_folder(tmp_path, form):
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.txt").write_text("0 send 1 7 10 6\n")
    (tmp_path / "files/b.txt").write_text("1 recv 0 7 10 6\n")
    (tmp_path / "list").write_text("files/a.txt\nfiles/b.txt\n")
    assert read_simgrid(tmp_path / ("list" if form == "list" else "files")).size == 2
    (tmp_path / "list").write_text("files/a.txt\nfiles/c.txt\n")
    assert "list:2: expecting the file of a rank's actions, got 'files/c.txt'" in refusal(
        read_simgrid, tmp_path / "list"
    )


@pytest.mark.parametrize(("collective", "name"), [*ALGORITHMS.items(), ("alltoall", "shift"), ("alltoall", "at_once")])
@pytest.mark.parametrize("form", ["simgrid", "goal"])
def test_what_an_exporter_writes_takes_the_schedules_own_time(tmp_path, collective, name, form):
    network = _one_switch(8)
    schedule = make(collective, name, network)
    if form == "simgrid":
        found = read_simgrid(write_traces(schedule, tmp_path, 10_000))
    else:
        write_goal(schedule, tmp_path / "s.goal", 10_000)
        found = read_goal(tmp_path / "s.goal")
    switch = one_switch(8, 1e-6)
    expected = run(switch, [program_of(schedule, network, 10_000)])
    assert run(switch, [found.on(range(8))]).rank_seconds == pytest.approx(expected.rank_seconds)


# ---- GOAL ----

MIXED = """{me} compute 3e8
{me} irecv {left} 7 200000 6
{me} isend {right} 7 200000 6
{me} compute {burst}
{me} waitall 2
{me} sendRecv 500000 {right} 500000 {left} 6 6
{me} irecv {left} 8 300000 6
{me} irecv {left} 9 100000 6
{me} isend {right} 9 100000 6
{me} wait {left} {me} 9
{me} isend {right} 8 300000 6
{me} waitall 2
{me} compute 1e8
"""

TEXT = """// a comment
num_ranks 2
/* several
lines */
rank 0 {
l1: calc 1000000000
l2: send 1000000b to 1 tag 7 cpu 0 nic 0
l3: calc 500000000
l2 requires l1
l3 irequires l2
}
rank 1 { l1: recv 1000000b from 0 tag 7
l2: calc 2000000000
l2 requires l1 }
"""


def test_goal_waits_for_what_an_operation_requires_alone(tmp_path):
    assert seconds(goal(tmp_path, TEXT)) == pytest.approx([1.5, 3 + SECONDS])
    assert seconds(goal(tmp_path, TEXT.replace("l3 irequires l2", "l3 requires l2"))) == pytest.approx(
        [1.5 + SECONDS, 3 + SECONDS]
    )
    assert seconds(goal(tmp_path, TEXT, unit=1e-6)) == pytest.approx([1500, 3000 + SECONDS], rel=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("num_ranks 2", "", r"t\.goal:5: expecting a rank in range\(0\), got 0"),
        ("num_ranks 2", "num_ranks 3", r"t\.goal: expecting a program of rank 2, got none"),
        ("l2 requires l1\nl3", "l2 requires l9\nl3", r"t\.goal:9: expecting the label of an operation above, got 'l9'"),
        ("l2 requires l1\nl3", "l1 requires l2\nl2 requires l1\nl3", r"t\.goal:6: expecting operations in no circle"),
        ("send 1000000b", "send 1000000", r"t\.goal:7: expecting send, recv, calc or requires, got 'l2: send"),
        ("from 0 tag 7", "from 0 tag 8", None),
        ("recv 1000000b", "recv 10b", r"t\.goal:12: expecting room for 1e\+06 bytes, got 10"),
        ("rank 0 {", "", r"t\.goal:6: expecting rank N \{ before an operation, got 'l1: calc 1000000000'"),
        ("to 1", "to 5", r"t\.goal:7: expecting another rank in range\(2\), got 5"),
    ],
)
def test_a_wrong_line_of_goal_is_named(tmp_path, old, new, problem):
    text = TEXT.replace(old, new, 1)
    if problem is None:  # tags of one pair that do not agree match in order
        assert "1 pairs of ranks whose tags do not agree" in goal(tmp_path, text).notes[0]
    else:
        assert re.search(problem, refusal(goal, tmp_path, text, error=InterferenceError))


@pytest.mark.parametrize("form", ["simgrid", "goal"])
def test_a_trace_of_too_many_ranks_is_refused_before_any_memory_is_taken(tmp_path, form, monkeypatch):
    monkeypatch.setenv("TOPOMPI_LIMITS", "ranks=3")
    if form == "simgrid":
        text = refusal(trace, tmp_path, *(f"{rank} init" for rank in range(4)), error=InterferenceError)
    else:
        text = refusal(goal, tmp_path, "num_ranks 9999999\n", error=InterferenceError)
    assert "expecting at most 3 ranks" in text


# ---- SimGrid itself ----

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
"""


def write_star(folder, hosts, rate, latency):
    """A platform of hosts on one switch, each with a link up and a link down."""
    lines = [f'<host id="h{host}" speed="1Gf"/>' for host in range(hosts)]
    about = f'bandwidth="{rate}Bps" latency="{latency}s"'
    lines += [f'<link id="{way}{host}" {about}/>' for host in range(hosts) for way in ("up", "down")]
    for one in range(hosts):
        for other in range(hosts):
            if one != other:
                way = f'<link_ctn id="up{one}"/><link_ctn id="down{other}"/>'
                lines.append(f'<route src="h{one}" dst="h{other}" symmetrical="NO">{way}</route>')
    (folder / "platform.xml").write_text(PLATFORM + "\n".join(lines) + "\n</zone></platform>\n")
    (folder / "hosts").write_text("".join(f"h{host}\n" for host in range(hosts)))


def smpirun(folder, hosts, *words):
    command = [
        "smpirun",
        "-quiet",
        "-np",
        str(hosts),
        "-platform",
        folder / "platform.xml",
        "-hostfile",
        folder / "hosts",
    ]
    done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@simgrid
def test_simgrids_replay_of_a_trace_takes_the_same_time(tmp_path):
    # A rate of 1 MB/s, because SimGrid prints microseconds.
    size, names = 6, []
    for me in range(size):
        text = MIXED.format(me=me, left=(me - 1) % size, right=(me + 1) % size, burst=1e8 * (1 + me))
        (tmp_path / f"{me}.txt").write_text(f"{me} init\n{text}{me} finalize\n")
        names.append(f"{tmp_path}/{me}.txt\n")
    (tmp_path / "list").write_text("".join(names))
    write_star(tmp_path, size, 1e6, 0)
    said = smpirun(tmp_path, size, "-replay", tmp_path / "list", *smpi.configuration("flow"))
    theirs = max(float(found) for found in re.findall(r"Simulation time ([0-9.]+)", said))
    both = Network.one_switch(size)
    network = Tables(both.source, both.target, np.full(2 * size, 1e6), np.zeros(2 * size), both.next_link)
    found = read_simgrid(tmp_path / "list", flops=1e9)
    assert run(network, [found.on(range(size))]).job_seconds[0] == pytest.approx(theirs, rel=1e-3)


PROGRAM = r"""
#include <mpi.h>
int main(int count, char **words) {
    static char there[100000], here[100000];
    int rank, size;
    MPI_Request both[2];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Irecv(here, 1000, MPI_DOUBLE, (rank + size - 1) % size, 5, MPI_COMM_WORLD, both);
        MPI_Isend(there, 1000, MPI_DOUBLE, (rank + 1) % size, 5, MPI_COMM_WORLD, both + 1);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    if (rank)
        MPI_Send(there, 10 * rank, MPI_INT, 0, rank, MPI_COMM_WORLD);
    for (int other = 1; !rank && other < size; other++)
        MPI_Recv(here, 1000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Alltoall(there, 100, MPI_CHAR, here, 100, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Allreduce(there, here, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
"""


@simgrid
@pytest.mark.skipif(
    shutil.which("smpicc") is None or shutil.which("gcc") is None, reason="SimGrid's smpicc is not here"
)
def test_a_trace_that_smpirun_writes_of_a_program_is_read(tmp_path):
    size = 4
    write_star(tmp_path, size, 1e9, 1e-6)
    (tmp_path / "p.c").write_text(PROGRAM)
    subprocess.run(["smpicc", "p.c", "-o", "p"], cwd=tmp_path, check=True, timeout=60, capture_output=True)
    options = ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/host-speed:1Gf", "--cfg=tracing/filename:ti"]
    smpirun(tmp_path, size, "-trace-ti", *options, "./p")
    found = read_simgrid(tmp_path / "ti")
    moved = bytes_between(found)
    ring = 3 * 8000 * np.roll(np.eye(size), 1, axis=1)
    answers = np.outer([0, 40, 80, 120], [1, 0, 0, 0])
    doubling = 800 * np.array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    assert (moved == ring + answers + 100 * (1 - np.eye(size)) + doubling).all()
    assert {SEND, RECEIVE} <= set(found.ranks.kind.tolist())
    assert (seconds(found) > 0).all()


@pytest.mark.parametrize("call", ["alltoall 4 4", "allgather 4 4", "alltoallv 0 4 4 4 4 0 4 4 4 4", "barrier"])
def test_collectives_with_more_messages_than_the_limit_are_refused(tmp_path, call, monkeypatch):
    lines = [f"{rank} {call}" for _ in range(20) for rank in range(4)]
    assert trace(tmp_path, *lines).size == 4
    monkeypatch.setenv("TOPOMPI_LIMITS", "rows=300")
    text = refusal(trace, tmp_path, *lines, error=InterferenceError)
    assert "t.txt: messages of collectives: expecting at most 300 rows" in text


def test_the_messages_of_all_ranks_are_counted_before_their_schedule_is_made(monkeypatch):
    monkeypatch.setenv("TOPOMPI_LIMITS", "rows=1M")
    for collective in ALL_TO_EACH:
        with pytest.raises(InterferenceError, match=f"{collective} of 2000 ranks: expecting at most"):
            steps_of(collective, ALGORITHMS[collective], 2000)
