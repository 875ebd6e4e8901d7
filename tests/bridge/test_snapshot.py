"""Slurm's state as the bridge reads it, and the bridge's notes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.errors import SourceError
from topompi.machine.slurm.controller import Move
from topompi.machine.slurm.mark import Mark
from topompi.machine.slurm.snapshot import MOST_TASKS, SlurmJob, read_snapshot

# job, number, partition, state, reason, nodes, priority, limit, submitted, start, end, user, required and excluded
# nodes, features, resources, reservation, nodes
PENDING = "7~7~door~PENDING~PartitionDown~2~4294901759~1-00:00:00~1795700031~N/A~N/A~ann~~~(null)~N/A~(null)~"
RUNNING = "4~4~run~RUNNING~None~2~9~2:00~1795700031~1795700073~1795700193~bob~n[4-5]~~(null)~N/A~(null)~n[4-5]"


def read(queue="", marks="", nodes=""):
    return read_snapshot(5, *(text.replace("~", "\x1f") for text in (queue, marks, nodes)))


def test_a_waiting_and_a_running_job_are_read():
    waiting, running = read(f"{PENDING}\n{RUNNING}\n", "4~topompi:moved=3~\n7~(null)~\n").jobs
    assert waiting == SlurmJob(
        "7", "door", "PENDING", "PartitionDown", 2, 4294901759, 86_400, submit=1795700031, user="ann"
    )
    assert (running.hosts, running.start, running.limit) == (("n4", "n5"), 1795700073, 120)
    assert (running.mark, running.holds, running.waits) == (Mark(moved=3), True, False)


@pytest.mark.parametrize(
    ("name", "ids", "throttle"),
    [
        ("2_[1-6%2]", ["2_1", "2_2", "2_3", "2_4", "2_5", "2_6"], 2),
        ("2_[1-7:3,9]", ["2_1", "2_4", "2_7", "2_9"], 0),
        ("2_11", ["2_11"], 0),
        ("2_[3-4,...%5]", ["2_3", "2_4"], 5),  # a list that Slurm has cut
        ("9+1", ["7"], 0),  # a part of a heterogeneous job has a number of its own
    ],
)
def test_tasks_of_an_array_are_jobs_of_their_own(name, ids, throttle):
    jobs = read(PENDING.replace("7~", f"{name}~", 1)).jobs
    assert [job.id for job in jobs] == ids
    assert {job.throttle for job in jobs} == {throttle}
    assert {job.together for job in jobs} == {"+" in name}


def test_a_huge_array_has_as_many_tasks_as_can_matter():
    assert len(read(PENDING.replace("7~", "2_[0-4000000]~", 1)).jobs) == MOST_TASKS


def test_the_throttle_of_a_task_that_stands_alone_is_in_its_note():
    (job,) = read(PENDING.replace("7~7", "2_3~11", 1), "11~topompi:throttle=2~\n").jobs
    assert (job.id, job.throttle) == ("2_3", 2)


@pytest.mark.parametrize(
    ("reason", "priority", "waits"),
    [
        ("PartitionDown", 1, True),
        ("AssocGrpNodeLimit", 1, True),  # left over from an earlier try
        ("Dependency", 1, False),
        ("BeginTime", 1, False),
        ("JobHeldUser", 0, False),
        ("PartitionDown", 0, False),
    ],
)
def test_jobs_that_wait_for_something_else_than_nodes_do_not_count_as_waiting(reason, priority, waits):
    assert SlurmJob("1", "door", "PENDING", reason, priority=priority).waits == waits


def test_nodes_are_closed_if_they_would_take_no_job_even_without_theirs():
    lines = {
        "idle": "n0",
        "mixed": "n1",
        "allocated": "n2",
        "draining": "n3",
        "drained": "n4",
        "down*": "n5",
        "idle*": "n6",
        "reserved": "n7",
        "idle~": "n8",
        "planned": "n9",
        "maint": "n10",
        "idle$": "n11",
        "completing": "n12",
    }
    rows = [("run", "up", state, node) for state, node in lines.items()] + [("door", "down", "idle", "n0")]
    found = read_snapshot(5, "", "", "".join("\x1f".join(row) + "\n" for row in rows))
    assert found.closed == {"n3", "n4", "n5", "n6", "n7", "n10", "n11"}
    assert found.busy == {"n1", "n2", "n12"}
    assert found.up == {"run": True, "door": False}
    assert found.members["door"] == {"n0"}


@pytest.mark.parametrize("line", ["7~7~door", PENDING.replace("~2~", "~many~"), PENDING.replace("7~7", "2_[a-b]~7")])
def test_a_malformed_line_names_its_job_or_command(line):
    with pytest.raises(SourceError, match="squeue"):
        read(line)


names = st.text("abcdefgh0123456789,[]-", max_size=30)
marks = st.builds(
    Mark,
    *[st.integers(0, 2**40)] * 3,
    left=st.sampled_from(["", "nodelist", "size"]),
    promise=names,
    throttle=st.integers(0, 99),
    others=st.sampled_from(["", "ticket 12", "topompi is fine"]),
)


@given(marks)
def test_a_note_is_read_back_and_keeps_the_text_of_others(mark):
    assert Mark.parse(mark.text()) == mark


@given(st.text(max_size=60))
def test_any_text_is_a_note(text):
    Mark.parse(text)
    Mark.parse(f"topompi:{text}")


def test_moves_are_lines_for_scontrol():
    start = Move("2_1", Mark(moved=5, others='see "x" \n y'), "run", "n[1-2]", 2)
    assert start.commands() == [
        'update JobId=2_1 Partition=run ReqNodeList=n[1-2] NumNodes=2-2 AdminComment="see x  y topompi:moved=5"'
    ]
    back = Move("3", Mark(), "door", "", release=True)
    assert back.commands() == ["update JobId=3 Partition=door ReqNodeList= AdminComment=", "release 3"]
