"""Jobs named by their first process or by their number in Slurm, on real processes."""

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shutter.real import FORKS_END, eventually, program, state
from topompi.shutter.errors import ShutterError
from topompi.shutter.jobs import Job
from topompi.shutter.targets import SlurmJob, Tree, processes_by_group

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
    job = Job("a", 0, target, US)
    try:
        yield job
    finally:
        job.close(lambda _: None)


def refreshed(job):
    job.refresh([], lambda _: None, processes_by_group())
    return sorted(process.pid for process in job.ranks)


def test_a_tree_has_a_process_and_all_its_descendants_whatever_their_sessions():
    with family() as (_, pids), registered(Tree(pids[0])) as job:
        assert refreshed(job) == sorted(pids)
        assert len(job.holds()) == 3


def test_a_descendant_whose_parent_ends_stays_in_the_tree():
    with family() as (made, pids), registered(Tree(pids[0])) as job:
        refreshed(job)
        made.stdin.write(b"\n")
        made.stdin.flush()
        eventually(lambda: state(pids[1]) == "Z")
        assert refreshed(job) == sorted({*pids} - {pids[1]})


def test_a_tree_with_the_daemon_inside_is_refused():
    with registered(Tree(os.getpid())) as job, pytest.raises(ShutterError, match="got the shutter's own"):
        refreshed(job)


def test_a_process_of_another_tree_does_not_belong():
    with family() as (_, pids), family() as (_, others), registered(Tree(pids[0])) as job:
        refreshed(job)
        assert not {*job.add(others)}


@pytest.mark.skipif(os.geteuid() != 0, reason="a slurmstepd belongs to root")
def test_a_slurm_job_has_the_descendants_of_its_steps_and_not_the_step_itself(tmp_path):
    """With a stand-in for slurmstepd: a program of its name, which writes the title of a step over its words."""
    source = """
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, 9);
    if (!fork()) { prctl(PR_SET_PDEATHSIG, 9); execvp(words[2], words + 2); _exit(1); }
    strcpy(words[0], "slurmstepd: [71.0]");
    return pause() && count;
}
"""
    (tmp_path / "step.c").write_text(source)
    subprocess.run(["cc", "-o", str(tmp_path / "slurmstepd"), str(tmp_path / "step.c")], check=True, timeout=60)
    words = [str(tmp_path / "slurmstepd"), "a long word for the title", "sleep", "60"]
    step = subprocess.Popen(words, start_new_session=True)
    try:
        eventually(lambda: processes_by_group().get(("ppid", step.pid)))
        eventually(lambda: Path(f"/proc/{step.pid}/cmdline").read_bytes().startswith(b"slurmstepd: [71.0"))
        (task,) = processes_by_group()["ppid", step.pid]
        with registered(SlurmJob(71)) as job, registered(SlurmJob(7)) as other:
            assert refreshed(job) == [task]
            assert refreshed(other) == []
    finally:
        os.killpg(step.pid, signal.SIGKILL)
        step.wait(10)
