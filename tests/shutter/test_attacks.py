"""Attempts of a user who knows the daemon's code to have it stop what it may not, or to end it or a program."""

import os
import random
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shutter.logs import read_log
from tests.shutter.real import BUSY, ENVIRONMENT, FORKS_END, eventually, program, state
from topompi.machine.shutter.controlgroups import ControlGroup, Freezer, open_group
from topompi.machine.shutter.decide import ShutterSettings
from topompi.machine.shutter.errors import ShutterError
from topompi.machine.shutter.holds import Process
from topompi.machine.shutter.jobs import RegisteredJob
from topompi.machine.shutter.log import Log
from topompi.machine.shutter.loop import Shutters
from topompi.machine.shutter.published import open_folder, path_of, read_counter
from topompi.machine.shutter.sources import SOURCES, UnavailableError
from topompi.machine.shutter.steps import slurm_job
from topompi.machine.shutter.targets import ProcessGroup, ProcessTree, processes_by_group
from topompi.machine.shutter.unit import unit_text
from topompi.machine.shutter.wanted import JobFolders, JobTargets

ANN, BOB = 65001, 65002  # numbers of two ordinary users; they need no names
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has processes of several users")

SETUID = """
#define _GNU_SOURCE
#include <unistd.h>
int main(void) { setresuid(geteuid(), geteuid(), geteuid()); write(1, "\\n", 1); for (;;); }
"""
# On a line, a process becomes another user's by a program whose setuid bit is set, or starts it as its child.
BECOMES = "print(flush=True); sys.stdin.readline(); os.execv(sys.argv[1], ['busy'])"
STARTS = f"{BECOMES.replace('os.execv', 'os.fork() or os.execv')}; time.sleep(60)"


@pytest.fixture(scope="module")
def setuid_of_bob(tmp_path_factory):
    """A program of user BOB that anybody may run, with BOB's rights."""
    folder = tmp_path_factory.mktemp("setuid")
    for one in (folder, *folder.parents):
        if one.stat().st_uid == os.geteuid() and not one.stat().st_mode & stat.S_IXOTH:
            one.chmod(one.stat().st_mode | stat.S_IXOTH)
    (folder / "busy.c").write_text(SETUID)
    made = folder / "busy"
    if subprocess.run(["cc", "-o", str(made), str(folder / "busy.c")], check=False, timeout=60).returncode:
        pytest.skip("no C compiler")
    os.chown(made, BOB, BOB)
    made.chmod(0o4755)
    if os.statvfs(made).f_flag & os.ST_NOSUID:
        pytest.skip(f"setuid bits have no effect in {folder}")
    return str(made)


# A Python program becomes a user's after its imports, because the user may be unable to read Python's files.
DROPS = "import os, socket, sys, time; os.setgroups([]); os.setresgid({0}, {0}, {0}); os.setresuid({0}, {0}, {0})\n"


@contextmanager
def of_user(user, text=BUSY, *words, **settings):
    """A program of a user, once it has the user's rights."""
    with program(DROPS.format(user) + text, *words, **settings) as made:
        eventually(lambda: Path(f"/proc/{made.pid}/status").read_text().count(f"\t{user}") == 8)
        yield made


@contextmanager
def registered(target, *users):
    job = RegisteredJob("a", 0, target, frozenset(users))
    try:
        yield job
    finally:
        job.close(lambda _: None)


def refresh(job):
    return job.refresh([], lambda _: None, processes_by_group())


def go(made):
    made.stdin.write(b"\n")
    made.stdin.flush()
    made.stdout.readline()


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def test_a_registered_process_that_becomes_another_user_is_not_stopped_and_its_job_is_let_go(setuid_of_bob):
    with of_user(ANN, BECOMES, setuid_of_bob, **PIPES) as made, registered(ProcessGroup(made.pid), ANN) as job:
        made.stdout.readline()
        assert refresh(job)
        (hold,) = job.holds()
        go(made)
        assert not hold.stop()  # immediately before the signal
        assert state(made.pid) == "R"
        with pytest.raises(ShutterError, match=f"of user {BOB}"):
            refresh(job)


def test_a_child_with_another_users_rights_is_not_stopped_and_does_not_end_the_daemon(setuid_of_bob, tmp_path):
    log, stop = tmp_path / "log", threading.Event()
    with of_user(ANN, STARTS, setuid_of_bob, **PIPES) as made, of_user(ANN) as other:
        made.stdout.readline()
        shutters = Shutters(
            ShutterSettings(every=0.01, length=0.001, repeats=1),
            JobTargets([f"a=tree:{made.pid}", f"b=tree:{other.pid}"]),
            JobFolders().target,
            Log(log, {}),
            [SOURCES["clock"]],
            frozenset({ANN}),
            random.Random(1),
        )
        running = threading.Thread(target=shutters.run, args=[stop])
        running.start()
        try:
            eventually(lambda: len(read_log(log).records) > 5)
            go(made)
            (child,) = processes_by_group()["ppid", made.pid]
            eventually(lambda: any("refused" in note.get("reason", "") for note in read_log(log).notes))
            assert running.is_alive()
            assert state(child) == "R"
        finally:
            stop.set()
            running.join(10)
        assert not running.is_alive()


@pytest.mark.parametrize("kind", ["pgid", "sid", "tree"])
def test_a_group_session_or_tree_of_another_user_is_refused(kind):
    with of_user(BOB) as made, registered(JobFolders().target(f"{kind}:{made.pid}"), ANN) as job:
        with pytest.raises(ShutterError, match=f"of user {BOB}"):
            refresh(job)
        assert job.holds() == []


def test_a_process_that_may_take_another_users_rights_back_is_refused():
    text = f"import os; os.setresuid({ANN}, {ANN}, 0); print(flush=True)\n{BUSY}"
    with program(text, stdout=subprocess.PIPE) as made, registered(ProcessGroup(made.pid), ANN) as job:
        made.stdout.readline()
        with pytest.raises(ShutterError, match="of user 0"):
            refresh(job)


@contextmanager
def without_descriptors():
    """No file can be opened, as if a user with thousands of processes made the daemon need too many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_whose_users_cannot_be_read_for_want_of_descriptors_is_not_stopped():
    with of_user(BOB) as made:
        hold = Process.open(made.pid, frozenset({ANN}))
        with without_descriptors():
            with pytest.raises(OSError, match="Too many open files"):
                hold.users()
            assert not hold.stop()
            assert not hold.is_free()
            assert hold.catches(signal.SIGCONT)  # counts as a launcher, which no signal stops
        assert state(made.pid) != "T"
        hold.close()


def test_a_job_is_refused_if_the_users_of_a_process_cannot_be_read():
    with of_user(ANN) as made, registered(ProcessGroup(made.pid), ANN) as job:
        assert refresh(job)
        for process in job.ranks:
            process.close_files()
        with without_descriptors(), pytest.raises(ShutterError, match="expecting the user of process"):
            job.require_stoppable()


FORGES = f"""{FORKS_END}{DROPS.format(ANN)}
ctypes.CDLL(None).prctl(15, b"slurmstepd", 0, 0, 0)
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # not dumpable: its files in /proc are root's
if not os.fork():
    while True: pass
print(flush=True)
while True: pass
"""


def test_a_process_that_calls_itself_a_step_of_slurm_is_none(tmp_path):
    words = ["bash", "-c", 'exec -a "slurmstepd: [71.0]" "$0" -c "$1"', sys.executable, FORGES]
    made = subprocess.Popen(words, stdout=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True)
    try:
        made.stdout.readline()
        assert Path(f"/proc/{made.pid}/cmdline").stat().st_uid == 0  # the forgery is whole
        assert Path(f"/proc/{made.pid}/cmdline").read_bytes().startswith(b"slurmstepd: [71.0]")
        with registered(slurm_job(71, str(tmp_path)), ANN) as job:
            refresh(job)
            assert not job.ranks
    finally:
        os.killpg(made.pid, 9)
        made.wait(10)
        made.stdout.close()


def test_a_socket_of_a_step_at_which_a_user_listens_refuses_the_job(tmp_path):
    listens = "one = socket.socket(fileno=0); one.listen(); print(flush=True)\n" + BUSY
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "n1_71.0"))
        with of_user(ANN, listens, stdin=bound, stdout=subprocess.PIPE) as made:
            made.stdout.readline()
            with registered(slurm_job(71, str(tmp_path)), ANN) as job, pytest.raises(OSError, match="socket of root"):
                refresh(job)


def test_a_spool_folder_that_users_can_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(ShutterError, match="everybody may write"):
        slurm_job(71, str(tmp_path))


def group_of_kernel():
    """The folder of control groups of version 2 on this machine."""
    for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(f"{path}/cgroup.procs"):
            return path
    pytest.skip("no control groups of version 2")


def test_a_folder_that_looks_like_a_control_group_is_none(tmp_path):
    for name in ("cgroup.procs", "cgroup.events", "cgroup.freeze"):
        (tmp_path / name).write_text("1\npopulated 1\n")
    with pytest.raises(ShutterError, match="control group"):
        ControlGroup(str(tmp_path))
    with pytest.raises(ShutterError, match="control group"):
        Freezer.open(str(tmp_path))


def test_a_control_group_behind_a_link_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(group_of_kernel())
    with pytest.raises(ShutterError, match="control group"):
        ControlGroup(str(tmp_path / "link"))
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        open_group(str(tmp_path / "link"))


def test_a_control_group_above_the_one_that_is_named_is_refused():
    with pytest.raises(ShutterError, match=r"without \. and \.\."):
        open_group(f"{group_of_kernel()}/../../etc")


def test_root_stops_no_control_group_outside_the_folders_that_are_named():
    places = JobFolders(groups=Path("/sys/fs/cgroup/named"))
    for path in ("/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/namedx", "/sys/fs/cgroup/named", "/x"):
        with pytest.raises(ShutterError, match="below"):
            places.target(f"cgroup:{path}")


@pytest.fixture
def own_group():
    path = Path(group_of_kernel()) / f"topompi-attack-{os.getpid()}"
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no control group may be made here")
    yield path
    eventually(lambda: not (path / "cgroup.procs").read_text())
    path.rmdir()


def test_a_control_group_into_which_another_users_process_came_is_not_frozen(own_group):
    with of_user(ANN) as made, of_user(BOB) as other:
        (own_group / "cgroup.procs").write_text(str(made.pid))
        with registered(ControlGroup(str(own_group)), ANN) as job:
            assert refresh(job)
            assert job.freezer is not None
            (own_group / "cgroup.procs").write_text(str(other.pid))
            with pytest.raises(ShutterError, match=f"of user {BOB}"):
                job.require_stoppable()


LINES = [
    b"\xff\xfe=pgid:7",
    b"c=pgid:" + b"9" * 5000,
    "c=pgid:\u0667\u0667".encode(),
    b"c=pgid:7\x00",
    b"c\x1b[2J=pgid:7",
    b"c=tree:",
    b"c",
    b"=" * 9000,
    b"a=pgid:8",
]


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_bad_line_in_the_file_of_jobs_is_refused_and_the_others_stay(tmp_path, line):
    file = tmp_path / "jobs"
    file.write_bytes(b"a=pgid:7\n" + line + b"\nb=pgid:8\n")
    wanted = JobTargets([], file)
    assert wanted() == {"a": "pgid:7", "b": "pgid:8"}
    assert len(wanted.refused) == 1


def test_a_pipe_in_place_of_the_file_of_jobs_does_not_hold_the_daemon(tmp_path):
    os.mkfifo(tmp_path / "jobs")
    assert JobTargets(["a=pgid:7"], tmp_path / "jobs")() == {"a": "pgid:7"}


COUNTS = f"from topompi.machine.shutter import progress\n{DROPS}progress(); progress(); print('counted')"


def counted(user):
    """What a program of a user prints that counts its progress, on standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTS.format(user)], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def place_of_ann():
    """The path of the folder of ANN's counters, where nothing is; removed at the end."""
    path = Path(path_of(ANN, 1)).parent
    remove(path)
    yield path
    remove(path)


def remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        for one in path.iterdir():
            one.unlink()
        path.rmdir()


@pytest.mark.parametrize("plant", ["nothing", "file", "link", "folder of bob", "open folder"])
def test_whatever_stands_at_the_place_of_a_counter_a_program_goes_on_with_at_most_one_line(
    place_of_ann, plant, tmp_path
):
    if plant == "file":
        place_of_ann.write_text("planted")
        os.chown(place_of_ann, BOB, BOB)
    elif plant == "link":
        place_of_ann.symlink_to(tmp_path)
    elif plant != "nothing":
        place_of_ann.mkdir()
        os.chown(place_of_ann, BOB if plant == "folder of bob" else ANN, BOB)
        place_of_ann.chmod(0o700 if plant == "folder of bob" else 0o777)
    said, told = counted(ANN)
    assert said == "counted\n"
    assert told.count("\n") == (plant != "nothing")
    assert not told or told.startswith("topompi: the shutter cannot see this process's progress")
    assert list(tmp_path.iterdir()) == []


def test_the_daemon_reads_no_counter_in_a_folder_of_somebody_else(place_of_ann, tmp_path):
    with of_user(ANN) as made:
        place_of_ann.symlink_to(tmp_path)
        (tmp_path / f"progress.{made.pid}").write_bytes(b"x" * 100)
        hold = Process.open(made.pid, frozenset({ANN}))
        with pytest.raises(UnavailableError):
            SOURCES["counter"].open(hold)
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            open_folder(ANN)
        hold.close()


@pytest.mark.parametrize("size", [0, 7, 24, 63, 70])
def test_a_counter_that_is_too_short_is_none(tmp_path, size):
    (tmp_path / "counter").write_bytes(b"TOPOPROG" * 9)
    os.truncate(tmp_path / "counter", size)
    fd = os.open(tmp_path / "counter", os.O_RDONLY)
    assert read_counter(fd, 1, 1) is None
    os.close(fd)


def test_a_log_at_a_link_is_refused(tmp_path):
    (tmp_path / "log").symlink_to("/etc/passwd")
    with pytest.raises(ShutterError, match="got a link"):
        Log(tmp_path / "log", {})


def test_a_tree_of_the_daemon_itself_is_refused():
    with registered(ProcessTree(os.getpid()), 0) as job, pytest.raises(ShutterError, match="the shutter's own"):
        refresh(job)


def test_the_rights_of_the_unit_suffice_to_measure_jobs_of_users(tmp_path):
    """The daemon runs as root without all capabilities but those of its systemd unit."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    rights = re.search(r"CapabilityBoundingSet=(CAP.*)", unit_text(["true"], tmp_path / "log"))[1].lower().split()
    bounded = ",".join(["-all", *(f"+{name.removeprefix('cap_')}" for name in rights)])
    log = tmp_path / "log"
    with of_user(ANN) as one, of_user(ANN) as two:
        words = ["--log", str(log), "--user", str(ANN), "--every", "20", "--set", "warm=0"]
        words += ["--job", f"a=pgid:{one.pid}", "--job", f"b=pgid:{two.pid}"]
        held = ["setpriv", "--no-new-privs", f"--bounding-set={bounded}"]
        command = [*held, sys.executable, "-m", "topompi", "shutter", "run", *words]
        made = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            eventually(lambda: log.exists() and b"\n" in log.read_bytes())
            eventually(lambda: {"a", "b"} <= {one.job for one in read_log(log).records if one.region == "during"})
        finally:
            made.terminate()
            assert made.wait(10) == 0


def test_the_unit_is_one_that_systemd_reads(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    file = tmp_path / "topompi-shutter.service"
    file.write_text(unit_text([sys.executable, "-V"], Path("/var/log/topompi/shutter.log")))
    done = subprocess.run(
        ["systemd-analyze", "--man=no", "verify", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert str(file) not in done.stderr
    assert file.name not in done.stderr
