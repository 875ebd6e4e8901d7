"""Stopping and resuming real processes: every thread, no reused pid, no lost signal, and no user's stop undone."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.shutter.real import BUSY, FORKS_END, eventually, program, state
from topompi.machine.shutter import watchdog as watchdogs
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.holds import Process
from topompi.machine.shutter.jobs import RegisteredJob
from topompi.machine.shutter.targets import ProcessGroup, processes_by_group
from topompi.machine.shutter.wanted import JobFolders
from topompi.machine.shutter.watchdog import Watchdog

US = frozenset({os.geteuid()})
THREADS = "import threading\nfor _ in range(3): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"


@pytest.fixture
def held():
    """A busy process and its hold."""
    with program(BUSY) as made:
        hold = Process.open(made.pid, US)
        yield made, hold
        hold.close()


def test_all_threads_are_in_state_t_when_the_hold_says_stopped():
    with program(THREADS) as made:
        eventually(lambda: len(os.listdir(f"/proc/{made.pid}/task")) == 4)
        hold = Process.open(made.pid, US)
        hold.stop()
        eventually(hold.is_stopped)
        threads = os.listdir(f"/proc/{made.pid}/task")
        assert [state(int(thread)) for thread in threads] == ["T"] * 4
        hold.resume()
        eventually(lambda: not hold.is_stopped())
        hold.close()


@pytest.mark.parametrize(
    ("states", "answer"), [("TTT", True), ("TRT", False), ("TST", False), ("TDT", False), ("ZTX", True), ("ZXX", False)]
)
def test_a_process_has_stopped_when_all_of_its_living_threads_have(monkeypatch, states, answer):
    with program(THREADS) as made:
        eventually(lambda: len(os.listdir(f"/proc/{made.pid}/task")) == 4)
        hold = Process.open(made.pid, US)
        monkeypatch.setattr(hold, "threads", lambda: list(states))
        monkeypatch.setattr(hold, "_state", lambda task: task)
        assert hold.is_stopped() is answer
        hold.close()


def test_a_process_that_ended_is_neither_alive_nor_stopped_and_signals_reach_nobody(held):
    made, hold = held
    hold.stop()
    eventually(hold.is_stopped)
    made.kill()
    made.wait(10)
    assert not hold.is_alive()
    assert not hold.is_stopped()
    hold.stop()
    hold.resume()


def test_a_zombie_is_not_alive(held):
    made, hold = held
    os.kill(made.pid, signal.SIGKILL)
    eventually(lambda: state(made.pid) == "Z")
    assert not hold.is_alive()


def test_the_descriptor_never_reaches_a_later_process_of_the_same_pid(tmp_path):
    """In a pid namespace of its own, where the next pid can be chosen."""
    text = """
import os, signal, time
from topompi.machine.shutter.holds import Process
def child(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    made = os.fork()
    if made == 0:
        time.sleep(60)
    assert made == pid, (made, pid)
child(500)
hold = Process.open(500, frozenset({os.geteuid()}))
os.kill(500, signal.SIGKILL)
os.waitpid(500, 0)
child(500)
hold.stop()
hold.resume()
assert not hold.is_alive() and not hold.is_stopped()
time.sleep(0.05)
assert Process.open(500, frozenset({os.geteuid()})).status().state == "S"
print("untouched")
"""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", text]
    if subprocess.run([*unshare[:5], "true"], capture_output=True, timeout=20).returncode:
        pytest.skip("this user may not make a pid namespace")
    done = subprocess.run(unshare, capture_output=True, text=True, timeout=20)
    assert done.stdout == "untouched\n", done.stderr


def test_a_stop_by_the_user_during_a_shutter_outlasts_it(held):
    made, hold = held
    hold.stop()
    eventually(hold.is_stopped)
    made.send_signal(signal.SIGSTOP)
    hold.resume()
    assert state(made.pid) == "T"
    made.send_signal(signal.SIGCONT)
    eventually(lambda: state(made.pid) != "T")


def test_a_terminal_stop_during_a_shutter_still_reaches_the_process():
    caught = "import signal; signal.signal(signal.SIGTSTP, lambda *_: print('caught', flush=True)); print(flush=True)"
    with program(f"{caught}\n{BUSY}", stdout=subprocess.PIPE) as made:
        made.stdout.readline()
        hold = Process.open(made.pid, US)
        hold.stop()
        eventually(hold.is_stopped)
        made.send_signal(signal.SIGTSTP)
        hold.resume()
        assert made.stdout.readline() == b"caught\n"
        hold.close()


def test_a_job_that_its_user_has_stopped_is_not_held_and_not_running():
    with program(BUSY) as made:
        job = RegisteredJob("a", 0, ProcessGroup(made.pid), frozenset({os.geteuid()}))
        assert job.refresh([], lambda _: None, processes_by_group())
        assert job.is_running()
        assert len(job.holds()) == 1
        made.send_signal(signal.SIGSTOP)
        eventually(lambda: state(made.pid) == "T")
        assert not job.is_running()
        assert job.holds() == []
        job.close(lambda _: None)


def test_the_processes_of_another_user_are_refused():
    with program(BUSY) as made:
        job = RegisteredJob("a", 0, ProcessGroup(made.pid), frozenset({os.geteuid() + 1}))
        with pytest.raises(ShutterError, match=f"job a: expecting processes of user .*, got process {made.pid}"):
            job.refresh([], lambda _: None, processes_by_group())
        assert job.holds() == []


def test_a_job_has_ended_when_all_known_processes_have_gone():
    with program(BUSY) as made:
        job = RegisteredJob("a", 0, ProcessGroup(made.pid), frozenset({os.geteuid()}))
        assert job.refresh([], lambda _: None, processes_by_group())
        made.kill()
        made.wait(10)
        assert not job.refresh([], lambda _: None, processes_by_group())


def test_children_that_a_job_has_just_started_are_taken_in():
    forks = "import os, sys\nsys.stdin.readline()\nif os.fork(): print(flush=True)\nwhile True: pass"
    with program(FORKS_END + forks, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        job = RegisteredJob("a", 0, ProcessGroup(made.pid), frozenset({os.geteuid()}))
        assert job.refresh([], lambda _: None, processes_by_group())
        if not os.path.exists(f"/proc/{made.pid}/task/{made.pid}/children"):
            pytest.skip("this kernel does not list children")
        made.stdin.write(b"\n")
        made.stdin.flush()
        made.stdout.readline()
        assert len(job.newborn()) == 1
        assert sorted(job.ranks.values()) == [0, 1]
        assert job.newborn() == []
        job.close(lambda _: None)


def test_a_launcher_which_would_forward_sigcont_to_its_ranks_is_not_stopped():
    text = "import os, signal\nif os.fork(): signal.signal(signal.SIGCONT, print)\nprint(flush=True)\nwhile True: pass"
    with program(FORKS_END + text, stdout=subprocess.PIPE) as made:
        made.stdout.readline()
        made.stdout.readline()
        job = RegisteredJob("a", 0, ProcessGroup(made.pid), frozenset({os.geteuid()}))
        assert job.refresh([], lambda _: None, processes_by_group())
        assert len(job.ranks) == 2
        assert {process.pid for process in job.launchers} == {made.pid}
        (hold,) = job.holds()
        assert hold.pid != made.pid
        os.kill(hold.pid, signal.SIGSTOP)
        eventually(hold.is_stopped)
        assert not job.is_running()
        job.close(lambda _: None)


def test_a_session_has_the_process_groups_that_a_launcher_makes_for_its_ranks():
    text = f"{FORKS_END}if not os.fork(): os.setpgid(0, 0); print(flush=True)\nwhile True: pass"
    with program(text, stdout=subprocess.PIPE) as made:
        made.stdout.readline()
        session, group = (
            RegisteredJob("a", 0, ProcessGroup(made.pid, kind), frozenset({os.geteuid()})) for kind in ("sid", "pgid")
        )
        try:
            assert session.refresh([], lambda _: None, processes_by_group())
            assert group.refresh([], lambda _: None, processes_by_group())
            assert (len(session.holds()), len(group.holds())) == (2, 1)
        finally:
            for process in session.ranks:
                signal.pidfd_send_signal(process.fd, signal.SIGKILL)
            for job in (session, group):
                job.close(lambda _: None)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "sid:0",
        "sid:x",
        "pgid:",
        "pgid:x",
        "pgid:0",
        "pgid:1",
        "pgid:-5",
        "tree:",
        "tree:1",
        "tree:99999999",
        "slurm:a",
        "cgroup:x",
        "cgroup:/",
        "7",
    ],
)
def test_targets_that_are_no_job_are_refused(words):
    with pytest.raises(ShutterError, match="expecting"):
        JobFolders().target(words)


def test_the_own_process_group_is_refused():
    with pytest.raises(ShutterError, match="expecting the process group or session of a job"):
        JobFolders().target(f"pgid:{os.getpgrp()}")
    with pytest.raises(ShutterError, match="expecting the process group or session of a job"):
        JobFolders().target(f"sid:{os.getsid(0)}")


PINNED = """
import os, threading
first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
def run():
    os.sched_setaffinity(0, {last})
    ready.set()
    threading.Event().wait()
ready = threading.Event()
threading.Thread(target=run, daemon=True).start()
ready.wait()
os.sched_setaffinity(0, {first})
threading.Event().wait()
"""


def test_the_cores_of_a_process_are_those_of_all_its_threads():
    every = os.sched_getaffinity(0)
    with program(PINNED) as made:
        process = Process.open(made.pid, US)
        eventually(lambda: os.sched_getaffinity(made.pid) == {min(every)})
        assert process.cores() == {min(every), max(every)}
        process.close()


def test_what_is_stopped_later_than_the_watchdog_waits_is_resumed_when_the_daemon_ends():
    """A daemon without a core may announce a stop long before its signal."""
    with program(BUSY) as made:
        hold, watchdog = Process.open(made.pid, US), Watchdog(patience=0.02)
        watchdog.announce([hold])
        time.sleep(0.2)
        hold.stop()
        eventually(hold.is_stopped)
        watchdog.close()
        eventually(lambda: not hold.is_stopped())
        hold.close()


def test_the_watchdog_has_left_the_daemons_session_before_anything_can_be_stopped(monkeypatch):
    """A signal to the daemon's process group would end it, too."""

    def late(kept):
        time.sleep(0.1)
        detach(kept)

    detach = watchdogs._detach
    monkeypatch.setattr(watchdogs, "_detach", late)
    watchdog = Watchdog()
    assert os.getsid(watchdog.pid) == watchdog.pid
    watchdog.close()


def test_a_watchdog_that_ends_at_once_is_an_error(monkeypatch):
    monkeypatch.setattr(watchdogs, "_detach", lambda kept: os._exit(1))
    with pytest.raises(ShutterError, match="expecting a watchdog"):
        Watchdog()
