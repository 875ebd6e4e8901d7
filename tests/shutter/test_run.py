"""The daemon on real jobs: its log, its end, and its watchdog."""

import json
import os
import pwd
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from tests.shutter.logs import read_log
from tests.shutter.real import BUSY, ENVIRONMENT, end_with_parent, eventually, program, state
from topompi.machine.shutter.published import path_of

COUNTING = "from topompi.machine.shutter import progress\nwhile True: progress()"
ONCE = ["--set", "repeats=1", "--set", "length=3.2"]
USERS = ["--user", "root"] if os.geteuid() == 0 else []


@contextmanager
def jobs(*texts):
    """Busy jobs, in the order of the texts."""
    with ExitStack() as stack:
        yield [stack.enter_context(program(text)) for text in texts]


@contextmanager
def daemon(log, *words, **settings):
    """A running ``topompi shutter run``; it has ended when the block ends."""
    command = [sys.executable, "-m", "topompi", "shutter", "run", "--log", str(log), *USERS, *words]
    settings |= {"start_new_session": True, "env": ENVIRONMENT, "preexec_fn": end_with_parent}
    made = subprocess.Popen(command, stderr=subprocess.PIPE, **settings)
    try:
        yield made
    finally:
        made.terminate()
        try:
            made.wait(10)
        except subprocess.TimeoutExpired:
            made.kill()
            made.wait(10)
        made.stderr.close()


def named(processes):
    return [word for name, one in zip("abc", processes, strict=False) for word in ("--job", f"{name}=pgid:{one.pid}")]


def has_begun(log):
    """Whether a log has its header."""
    return log.exists() and b"\n" in log.read_bytes()


def regions(log):
    """The records of a log, in order."""
    return read_log(log).records if has_begun(log) else ()


def test_jobs_run_alone_in_turn_and_the_others_stand_still(tmp_path):
    log = tmp_path / "log"
    with (
        jobs(BUSY, BUSY, BUSY) as made,
        daemon(log, *named(made), *ONCE, "--every", "20", "--source", "clock") as shutter,
    ):
        eventually(lambda: len([one for one in regions(log) if one.region == "during"]) >= 7)
        shutter.terminate()
        assert shutter.wait(10) == 0
        assert [state(one.pid) for one in made] == ["R"] * 3
    found = read_log(log)
    alone = "".join(one.job for one in found.records if one.region == "during")
    given_up = [note for note in found.notes if note["event"] == "given up"]  # on a busy machine; the turn is lost
    assert alone in "abc" * len(alone) or given_up
    assert len(alone) >= 7
    assert not found.is_torn
    for record in found.records:
        assert record.t0 < record.t1
        assert record.rank == 0
    blocks = re.fullmatch(r"(bbbdaaa)+", "".join(one.region[0] for one in found.records))
    assert blocks, "each job is measured before and after every shutter, and one job during it"


def test_a_region_has_ten_windows_without_gaps(tmp_path):
    log = tmp_path / "log"
    with jobs(COUNTING, COUNTING) as made, daemon(log, *named(made), "--every", "20"):
        eventually(lambda: sum(one.region == "during" for one in regions(log)) >= 10 * 10)
    found = regions(log)
    runs = [list(run) for _, run in groupby(found, key=lambda one: (one.region, one.job))]
    assert {len(run) for run in runs} == {10}
    for run in runs:
        assert [one.t1 for one in run[:-1]] == [one.t0 for one in run[1:]]
    lengths = [run[-1].t1 - run[0].t0 for run in runs]
    assert statistics.median(lengths) >= 0.0032 - 0.0003  # under load later, because this process waits for its core


def test_a_process_that_publishes_is_measured_by_its_counter_and_another_by_its_clock(tmp_path):
    log = tmp_path / "log"
    with jobs(COUNTING, BUSY) as made:
        eventually(lambda: os.path.exists(path_of(os.geteuid(), made[0].pid)))
        with daemon(log, *named(made), "--every", "20"):
            eventually(lambda: any(one.delta > 0 for one in regions(log) if one.job == "a"))
    sources = {note["job"]: note for note in read_log(log).notes if note["event"] == "source"}
    if read_log(log).header["missing"]:
        assert sources["a"]["source"] == "counter"
        assert sources["b"]["source"] == "clock"
        assert "blind" in sources["b"]["warning"]


def test_a_missing_source_is_told_in_the_messages_and_in_the_header(tmp_path):
    log = tmp_path / "log"
    with jobs(BUSY) as made, daemon(log, *named(made)) as shutter:
        eventually(lambda: has_begun(log) and read_log(log).notes)
        shutter.terminate()
        assert shutter.wait(10) == 0
        told = [json.loads(line)["event"] for line in shutter.stderr.read().splitlines()]
    missing = read_log(log).header["missing"]
    assert [line for line in told if line.startswith("no source")] == [
        f"no source {a}: {b}" for a, b in missing.items()
    ]


def test_one_job_alone_is_never_stopped(tmp_path):
    log = tmp_path / "log"
    with jobs(BUSY) as made, daemon(log, *named(made), "--every", "5"):
        eventually(lambda: has_begun(log) and read_log(log).notes)
        time.sleep(0.3)
        assert read_log(log).records == ()


def test_jobs_come_and_go_by_the_file_of_jobs(tmp_path):
    log, file = tmp_path / "log", tmp_path / "jobs"
    with jobs(BUSY, BUSY, BUSY) as made:
        file.write_text(f"# none yet\na=pgid:{made[0].pid}\n")
        with daemon(log, "--jobs", str(file), "--every", "20"):
            eventually(lambda: has_begun(log) and read_log(log).notes)
            file.write_text("".join(f"{name}=pgid:{one.pid}\n" for name, one in zip("abc", made, strict=True)))
            eventually(lambda: {one.job for one in regions(log)} == set("abc"))
            made[0].kill()
            file.write_text("".join(f"{name}=pgid:{one.pid}\n" for name, one in zip("abc", made, strict=True)))
            gone = [{"job": "a", "reason": "ended"}]
            eventually(
                lambda: (
                    [
                        {key: note[key] for key in ("job", "reason")}
                        for note in read_log(log).notes
                        if note["event"] == "gone"
                    ]
                    == gone
                )
            )
            assert state(made[1].pid) in "RT"


def test_a_job_stopped_by_its_user_stays_stopped_and_leaves_the_turns(tmp_path):
    log = tmp_path / "log"
    with jobs(BUSY, BUSY, BUSY) as made, daemon(log, *named(made), *ONCE, "--every", "5") as shutter:
        eventually(lambda: len(regions(log)) >= 14)
        made[1].send_signal(signal.SIGSTOP)
        eventually(lambda: state(made[1].pid) == "T")
        made[1].send_signal(signal.SIGSTOP)  # the first may have merged with a SIGSTOP of the shutter
        time.sleep(0.05)
        seen = len(regions(log))
        for _ in range(100):
            assert state(made[1].pid) == "T"
            time.sleep(0.003)
        assert "b" not in {one.job for one in regions(log)[seen + 7 :]}
        shutter.terminate()
        assert shutter.wait(10) == 0
        assert state(made[1].pid) == "T"


def resumed_in(log):
    """The jobs in whose shutters somebody resumed another one; a busy machine gives up shutters for another reason."""
    notes = [note for note in read_log(log).notes if note["event"] == "given up"]
    return [note["job"] for note in notes if "a signal from elsewhere" in note["reason"]]


def test_a_shutter_in_which_somebody_resumes_a_job_is_given_up(tmp_path):
    log, words = tmp_path / "log", ("--every", "50", "--set", "length=100", "--set", "repeats=1")
    with jobs(BUSY, BUSY) as made, daemon(log, *named(made), *words):

        def given_up():
            if state(made[0].pid) == "T":
                made[0].send_signal(signal.SIGCONT)  # on a busy machine this may come after the shutter's end
            return has_begun(log) and "b" in resumed_in(log)

        eventually(given_up)
        assert resumed_in(log)[0] == "b"


def test_the_limit_on_the_time_stopped_holds(tmp_path):
    log = tmp_path / "log"
    with jobs(BUSY, BUSY) as made, daemon(log, *named(made), *ONCE, "--every", "5", "--most-stopped", "0.05"):
        eventually(lambda: sum(one.region == "during" for one in regions(log)) >= 4)
        time.sleep(1.0)
        counts = [sum(one.region == "during" and one.job == job for one in regions(log)) for job in "ab"]
        assert all(1 <= count <= 0.05 / 0.0032 for count in counts), counts


TALK = """
import socket, sys
port = int(sys.argv[1])
if port:
    link = socket.create_connection(("127.0.0.1", port), timeout=20)
else:
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    link = door.accept()[0]
link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
times = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 1, socket.TCP_USER_TIMEOUT: 500}
for option, value in times.items():
    link.setsockopt(socket.IPPROTO_TCP, option, value)
link.settimeout(2)
if port:
    link.sendall(b"x")
while link.recv(1):
    link.sendall(b"x")
"""


def test_connections_with_short_timeouts_between_jobs_survive(tmp_path):
    log = tmp_path / "log"
    with program(TALK, "0", stdout=subprocess.PIPE) as server:
        port = server.stdout.readline().decode().strip()
        with program(TALK, port) as client:
            words = ("--every", "5", "--set", "length=30", "--set", "repeats=1", "--source", "clock")
            with daemon(log, *named([server, client]), *words):
                eventually(lambda: sum(one.region == "during" for one in regions(log)) >= 20)
                assert server.poll() is None
                assert client.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_and_its_watchdog_and_everything_runs(tmp_path, number):
    with (
        jobs(BUSY, BUSY) as made,
        daemon(tmp_path / "log", *named(made), "--every", "1", "--set", "length=20", "--set", "repeats=1") as shutter,
    ):
        eventually(lambda: any(state(one.pid) == "T" for one in made))
        dog = children(shutter.pid)
        assert len(dog) == 1
        shutter.send_signal(number)
        assert shutter.wait(10) == 0
        assert [state(one.pid) for one in made] == ["R", "R"]
        assert not os.path.exists(f"/proc/{dog[0]}")


def children(pid):
    """The children of a process, by a scan of all processes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            continue
    return found


def test_without_its_watchdog_the_daemon_resumes_everything_and_ends(tmp_path):
    with jobs(BUSY, BUSY) as made, daemon(tmp_path / "log", *named(made), "--every", "5") as shutter:
        eventually(lambda: len(regions(tmp_path / "log")) > 5)
        os.kill(children(shutter.pid)[0], signal.SIGKILL)
        assert shutter.wait(10) == 1
        assert b"expecting a watchdog" in shutter.stderr.read()
        assert [state(one.pid) for one in made] == ["R", "R"]


def test_the_watchdog_outlives_the_signals_that_end_daemons(tmp_path):
    words = ("--every", "1", "--set", "length=50", "--set", "repeats=1")
    with jobs(BUSY, BUSY) as made, daemon(tmp_path / "log", *named(made), *words) as shutter:
        eventually(lambda: len(regions(tmp_path / "log")) > 5)
        dog = children(shutter.pid)[0]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(dog, number)
        eventually(lambda: any(state(one.pid) == "T" for one in made))
        shutter.kill()
        eventually(lambda: [state(one.pid) for one in made] == ["R", "R"], 10.0)
        eventually(lambda: not os.path.exists(f"/proc/{dog}"))


def test_the_watchdog_resumes_the_jobs_of_a_daemon_that_was_stopped_in_a_shutter_and_the_shutter_is_given_up(tmp_path):
    log, words = tmp_path / "log", ("--every", "1", "--set", "length=30")
    with jobs(BUSY, BUSY) as made, daemon(log, *named(made), *words) as shutter:
        eventually(lambda: len(regions(log)) > 5)
        for _ in range(3):
            eventually(lambda: any(state(one.pid) == "T" for one in made))
            shutter.send_signal(signal.SIGSTOP)
            eventually(lambda: [state(one.pid) for one in made] == ["R", "R"], 10.0)
            shutter.send_signal(signal.SIGCONT)
        eventually(lambda: any(note["event"] == "given up" for note in read_log(log).notes))
        seen = len(regions(log))
        eventually(lambda: len(regions(log)) > seen + 5)


KILLED = """
import random, sys, threading
from pathlib import Path
from topompi.machine.shutter.decide import ShutterSettings
from topompi.machine.shutter.log import Log
from topompi.machine.shutter.loop import Shutters
from topompi.machine.shutter.sources import SOURCES
from topompi.machine.shutter.wanted import JobFolders, JobTargets
log, user, *targets = sys.argv[1:]
wanted = JobTargets([f"j{number}={target}" for number, target in enumerate(targets)])
settings = ShutterSettings(length=0.02, every=0.0005, repeats=1)
groups = Path(targets[0].removeprefix("cgroup:")).parent if targets[0].startswith("cgroup:") else None
places, users = JobFolders(groups=groups), frozenset({int(user)})
made = Shutters(settings, wanted, places.target, Log(log, {}), [SOURCES["clock"]], users, random.Random())
print(flush=True)
made.run(threading.Event())
"""

MISSED = """
import signal, sys
number = signal.SIGRTMIN
signal.pthread_sigmask(signal.SIG_BLOCK, {number})
print(flush=True)
for count in range(int(sys.argv[1])):
    while signal.sigtimedwait({number}, 0) is None:
        pass
print("all", flush=True)
"""


def test_nothing_stays_stopped_and_no_signal_is_lost_when_the_daemon_is_killed_in_a_shutter(tmp_path):
    rounds = 20
    with ExitStack() as stack:
        made = [
            stack.enter_context(program(MISSED, str(rounds), stdout=subprocess.PIPE)),
            *(stack.enter_context(program(BUSY)) for _ in range(2)),
        ]
        made[0].stdout.readline()
        words = [str(tmp_path / "log"), str(os.geteuid()), *(f"pgid:{one.pid}" for one in made)]
        for _ in range(rounds):
            with program(KILLED, *words, stdout=subprocess.PIPE) as shutter:
                shutter.stdout.readline()
                eventually(lambda: state(made[0].pid) == "T")
                shutter.kill()
                made[0].send_signal(signal.SIGRTMIN)
                shutter.wait(10)
            eventually(lambda: all(state(one.pid) != "T" for one in made if one.poll() is None), 10.0)
        assert made[0].stdout.readline() == b"all\n"
        assert made[0].wait(10) == 0
        assert [state(one.pid) for one in made[1:]] == ["R", "R"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expecting --job, --jobs or --cgroups, got none"),
        (["--job", "a"], "--job: expecting NAME=TARGET, got 'a'"),
        (["--job", "a=pgid:7", "--source", "x"], "expecting one of auto, perf, counter, calls, clock"),
        (["--job", "a=pgid:7", "--set", "length=0"], "expecting length above 0"),
        (["--job", "a=pgid:7", "--user", "nobody-of-this-name"], "expecting"),
        (["--job", "a=pgid:7", "--core", "100000"], "expecting a core of"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, words, told):
    with daemon(tmp_path / "log", *words) as shutter:
        assert shutter.wait(20) == 1
        lines = shutter.stderr.read().decode().splitlines()
        assert len(lines) == 1
        assert told in lines[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_has_to_name_users(tmp_path):
    command = [sys.executable, "-m", "topompi", "shutter", "run", "--log", str(tmp_path / "log"), "--job", "a=pgid:7"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert "expecting --user as root, got none" in done.stderr


def test_a_job_that_cannot_be_registered_is_refused_once_and_the_others_go_on(tmp_path):
    log = tmp_path / "log"
    with jobs(BUSY, BUSY) as made, daemon(log, *named(made), "--job", "wrong=pgid:1", "--every", "20"):
        eventually(lambda: len(regions(log)) >= 35)
    refused = [note for note in read_log(log).notes if note["event"] == "gone" and "refused" in note["reason"]]
    assert [note["job"] for note in refused] == ["wrong"]


# Become another user in a running program, because that user may not be able to read this checkout. The kernel forgets
# the signal at the parent's end meanwhile, and takes the program for one of secrets.
BECOME = """
import ctypes, os
os.setgroups([]), os.setgid({group}), os.setuid({user})
ctypes.CDLL(None).prctl(4, 1), ctypes.CDLL(None).prctl(1, 9)
"""
DAEMON = """
import sys
from pathlib import Path
from topompi.cli.shutter.run import run
{become}
run(Path(sys.argv[1]), job=sys.argv[2:], every=20.0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_than_root_measures_his_jobs_and_is_refused_those_of_others():
    nobody = pwd.getpwnam("nobody")
    become = BECOME.format(user=nobody.pw_uid, group=nobody.pw_gid)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, jobs(become + BUSY, become + BUSY, BUSY) as made:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        log = Path(folder) / "log"
        eventually(lambda: [os.stat(f"/proc/{one.pid}").st_uid for one in made] == [nobody.pw_uid, nobody.pw_uid, 0])
        with program(DAEMON.format(become=become), str(log), *named(made)[1::2], stderr=subprocess.PIPE) as shutter:
            eventually(lambda: sum(one.region == "during" for one in regions(log)) >= 4 * 16)
            assert os.stat(log).st_uid == nobody.pw_uid
            assert state(made[2].pid) == "R"
            shutter.terminate()
            assert shutter.wait(10) == 0
        assert {one.job for one in regions(log)} == {"a", "b"}
        (refused,) = [note["reason"] for note in read_log(log).notes if note["event"] == "gone"]
        assert refused.startswith(f"refused: job c: expecting processes of user {nobody.pw_uid}, got process")
        assert [state(one.pid) for one in made] == ["R", "R", "R"]


def test_a_long_shutter_measures_the_job_again_after_it_has_run_alone_for_longer(tmp_path):
    log = tmp_path / "log"
    with jobs(COUNTING, COUNTING) as made, daemon(log, *named(made), "--every", "20", "--set", "warm-every=0.1"):
        eventually(lambda: sum(one.region == "warm" for one in regions(log)) >= 2 * 10)
    runs = [list(run) for _, run in groupby(regions(log), key=lambda one: (one.region, one.job))]
    order = [(run[0].region, run[0].job, run) for run in runs]
    long = [(before, run) for (_, _, before), (region, _, run) in pairwise(order) if region == "warm"]
    assert long
    for before, run in long:
        assert (before[0].region, before[0].job) == ("during", run[0].job)
        assert run[-1].t1 - before[0].t0 >= 0.04 + 0.003
    starts = [run[0].t0 for _, run in long]
    assert all(later - earlier >= 0.1 for earlier, later in pairwise(starts))
