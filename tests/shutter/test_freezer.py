"""Control groups of version 2 as jobs: frozen as a whole, also by the watchdog, and never with the daemon inside."""

import os
import random
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.shutter.logs import read_log
from tests.shutter.real import BUSY, eventually, program, state
from topompi.machine.shutter.controlgroups import ControlGroup, Freezer
from topompi.machine.shutter.decide import ShutterSettings
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.jobs import RegisteredJob
from topompi.machine.shutter.log import Log
from topompi.machine.shutter.loop import Shutters
from topompi.machine.shutter.sources import SOURCES
from topompi.machine.shutter.wanted import JobFolders, JobTargets

US = frozenset({os.geteuid()})


@pytest.fixture
def folder():
    """A control group in which groups can be made."""
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        path = Path(root) / f"topompi-test-{os.getpid()}"
        if not os.path.exists(f"{root}/cgroup.procs"):
            continue
        try:
            path.mkdir()
        except OSError:
            continue
        yield path
        for _ in range(200):  # killed processes leave their group some time later
            with suppress(OSError):
                for one in path.iterdir():
                    if one.is_dir():
                        one.rmdir()
                path.rmdir()
                return
            time.sleep(0.01)
        return
    pytest.skip("no control groups of version 2 that this user may make")


def put(folder, name, process):
    path = folder / name
    path.mkdir(exist_ok=True)
    (path / "cgroup.procs").write_text(str(process.pid))
    return path


def is_frozen(path):
    return "frozen 1" in (path / "cgroup.events").read_text()


def test_a_group_is_frozen_and_thawed_and_a_stop_by_the_user_outlasts_it(folder):
    with program(BUSY) as made:
        path = put(folder, "a", made)
        hold = Freezer.open(str(path))
        assert hold.is_alive()
        hold.stop()
        eventually(hold.is_stopped)
        made.send_signal(signal.SIGSTOP)
        hold.resume()
        eventually(lambda: not is_frozen(path))
        eventually(lambda: state(made.pid) == "T")
        hold.close()


def test_a_group_frozen_by_its_user_is_left_out(folder):
    with program(BUSY) as made:
        path = put(folder, "a", made)
        job = RegisteredJob("a", 0, ControlGroup(str(path)), US)
        assert job.refresh([], lambda _: None, {})
        assert [hold.kind for hold in job.holds()] == ["freezer"]
        (path / "cgroup.freeze").write_text("1")
        eventually(lambda: is_frozen(path))
        assert job.holds() == []
        assert not job.is_running()
        (path / "cgroup.freeze").write_text("0")
        job.close(lambda _: None)


def test_a_group_with_the_daemon_inside_is_refused(folder):
    with program(BUSY) as made:
        path = put(folder, "a", made)
        job = RegisteredJob("a", 0, ControlGroup(str(path)), US, frozenset({made.pid}))
        with pytest.raises(ShutterError, match="got the shutter's own"):
            job.refresh([], lambda _: None, {})
        assert job.holds() == []


def test_the_groups_of_a_folder_are_jobs_and_run_alone_in_turn(folder, tmp_path):
    with program(BUSY) as one, program(BUSY) as two:
        put(folder, "a", one)
        put(folder, "b", two)
        log = tmp_path / "log"
        made = Shutters(
            ShutterSettings(every=0.02),
            JobTargets([], None, folder),
            JobFolders(groups=folder).target,
            Log(log, {}),
            [SOURCES["clock"]],
            US,
            random.Random(1),
        )
        stop = threading.Event()
        running = threading.Thread(target=made.run, args=[stop])
        running.start()
        try:
            eventually(lambda: sum(record.region == "during" for record in read_log(log).records) >= 4)
        finally:
            stop.set()
            running.join(10)
        assert {record.job for record in read_log(log).records} == {"a", "b"}
        assert not is_frozen(folder / "a")
        assert not is_frozen(folder / "b")


def test_the_watchdog_thaws_what_a_killed_daemon_has_frozen(folder, tmp_path):
    from tests.shutter.test_run import KILLED

    with program(BUSY) as one, program(BUSY) as two:
        paths = [put(folder, "a", one), put(folder, "b", two)]
        words = [str(tmp_path / "log"), str(os.geteuid()), *(f"cgroup:{path}" for path in paths)]
        for _ in range(10):
            with program(KILLED, *words, stdout=subprocess.PIPE) as shutter:
                shutter.stdout.readline()
                eventually(lambda: any(map(is_frozen, paths)))
                shutter.kill()
            eventually(lambda: not any(map(is_frozen, paths)), 10.0)
