"""Jobs named by their first process or by their number in Slurm, on real processes."""

import os
import subprocess
from contextlib import contextmanager

import pytest

from tests.shutter.real import FORKS_END, eventually, program, state
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.jobs import RegisteredJob
from topompi.machine.shutter.steps import slurm_job
from topompi.machine.shutter.targets import ProcessTree, processes_by_group

US = frozenset({os.geteuid()})
# A process, its child in a session of its own, and a grandchild; it prints their numbers, and its child ends on a line.
FAMILY = f"""{FORKS_END}
import sys, time
one = os.fork()
if not one:
    os.setsid()
    end, begin = os.pipe()
    two = os.fork()
    if two:
        os.read(end, 1)
        print(os.getppid(), os.getpid(), two, flush=True)
        sys.stdin.readline()
        os._exit(0)
    ctypes.CDLL(None).prctl(1, 0)  # outlives its parent
    os.write(begin, b"x")
time.sleep(20)
"""


@contextmanager
def family(text=FAMILY):
    """A process with a child and a grandchild, and the numbers of the three."""
    with program(text, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        yield made, list(map(int, made.stdout.readline().split()))


@contextmanager
def registered(target):
    job = RegisteredJob("a", 0, target, US)
    try:
        yield job
    finally:
        job.close(lambda _: None)


def refreshed(job):
    job.refresh([], lambda _: None, processes_by_group())
    return sorted(process.pid for process in job.ranks)


def test_a_tree_has_a_process_and_all_its_descendants_whatever_their_sessions():
    with family() as (_, pids), registered(ProcessTree(pids[0])) as job:
        assert refreshed(job) == sorted(pids)
        assert len(job.holds()) == 3


def test_a_descendant_whose_parent_ends_stays_in_the_tree():
    with family() as (made, pids), registered(ProcessTree(pids[0])) as job:
        refreshed(job)
        made.stdin.write(b"\n")
        made.stdin.flush()
        eventually(lambda: state(pids[1]) == "Z")
        assert refreshed(job) == sorted({*pids} - {pids[1]})


def test_a_tree_with_the_daemon_inside_is_refused():
    with registered(ProcessTree(os.getpid())) as job, pytest.raises(ShutterError, match="got the shutter's own"):
        refreshed(job)


def test_a_process_of_another_tree_does_not_belong():
    with family() as (_, pids), family() as (_, others), registered(ProcessTree(pids[0])) as job:
        refreshed(job)
        assert not {*job.add(others)}


STEP = """
import os, socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
if os.fork() == 0:
    time.sleep(60)
print(flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a slurmstepd belongs to root")
def test_a_slurm_job_has_the_descendants_of_the_listeners_at_its_sockets_and_not_the_listeners_themselves(tmp_path):
    """With a stand-in for slurmstepd: a program of root's that listens at a socket of the step's name."""
    words = {number: str(tmp_path / f"n1_{number}.0") for number in (71, 7)}
    with (
        program(FORKS_END + STEP, words[71], stdout=subprocess.PIPE) as step,
        program(FORKS_END + STEP, words[7], stdout=subprocess.PIPE) as another,
    ):
        for one in (step, another):
            one.stdout.readline()
        (task,) = processes_by_group()["ppid", step.pid]
        with registered(slurm_job(71, str(tmp_path))) as job, registered(slurm_job(1, str(tmp_path))) as other:
            assert refreshed(job) == [task]
            assert refreshed(other) == []
    (tmp_path / "n1_71.1").write_text("no socket")
    with registered(slurm_job(71, str(tmp_path))) as job:
        assert refreshed(job) == []  # the sockets of steps that died refuse connections
