"""The command ``topompi colocate measure`` with real processes, and its journal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import ROOT, command_line
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.measuring.journal import Journal
from topompi.machine.colocation.measuring.plan import MeasuredProgram, MeasuredRun
from topompi.machine.colocation.measuring.running import Guard, RunError, run_segment
from topompi.machine.colocation.speedups.files import read_speedups

PROGRAMS = [MeasuredProgram("a", ("true",)), MeasuredProgram("b", ("true", "2"))]
CORES = ([0], [1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def _measure(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "topompi", "colocate", "measure", *words, "-o", str(folder / "heat.json")]


@two_cores
def test_two_programs_are_measured_and_a_second_call_runs_nothing(tmp_path):
    words = ["quick=sleep 0.02", "slow=sleep 0.05", "--set=least=1,most=1", f"--draw={tmp_path / 'heat.svg'}"]
    first = subprocess.run(_measure(tmp_path, *words), env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert first.returncode == 0, first.stderr
    assert "4 of 4 cells still needed, unknown time; now quick alone" in first.stderr
    found = read_speedups(tmp_path / "heat.json")
    assert found.programs == ("quick", "slow")
    assert found.known.all()
    assert found.ratio.diagonal().tolist() == [1, 1]
    assert found.compact[1] > 0.05
    assert (tmp_path / "heat.svg").read_text().count("(empty)") == 1
    journal = (tmp_path / "heat.json.runs").read_text()
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    dry = command_line("colocate", "measure", *words, "new=true", "--dry-run", "-o", tmp_path / "heat.json")
    assert "5 of 9 cells still needed" in dry.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    again = command_line("colocate", "measure", *words, "-o", tmp_path / "heat.json")
    assert again.stderr == ""
    assert again.stdout == first.stdout
    assert (tmp_path / "heat.json.runs").read_text() == journal


@two_cores
def test_a_program_and_its_children_die_with_a_measurement_that_is_killed(tmp_path):
    own, child, later = tmp_path / "own", tmp_path / "child", tmp_path / "later"
    line = f"sleep 60 & echo $! > {child}; echo $$ > {own}; wait"
    # The guard forgets a group that has ended, and knows the one of a further run.
    words = [f"a=sh -c 'test -e {later} || {{ touch {later}; exit 0; }}; {line}'"]
    process = subprocess.Popen(_measure(tmp_path, *words), env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        pids = [int(_wait_for(lambda file=tmp_path / name: file.read_text().strip())) for name in ("own", "child")]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert _wait_for(lambda: not any(map(_runs, pids)))


@two_cores
def test_a_guard_that_is_killed_disturbs_no_run(tmp_path):
    ended: list[str] = []
    with Guard() as guard:
        guard._process.kill()
        guard._process.wait()
        run_segment([MeasuredProgram("a", ("true",))], CORES, 10, lambda name, _: ended.append(name), guard)
    assert ended == ["a"]


def _wait_for(value):
    for _ in range(1000):
        try:
            if found := value():
                return found
        except OSError:
            pass
        time.sleep(0.01)
    raise AssertionError("expecting a value within 10 s, got none")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@two_cores
def test_the_shorter_program_is_restarted_until_the_longer_ends():
    ended: list[str] = []
    programs = [MeasuredProgram("long", ("sleep", "2")), MeasuredProgram("short", ("sleep", "0.05"))]
    run_segment(programs, CORES, 10, lambda name, _: ended.append(name))
    assert ended.count("long") == 1
    assert ended[-1] == "long"
    assert ended.count("short") >= 2


def test_a_program_that_fails_is_an_error_with_its_last_lines():
    failing = MeasuredProgram("bad", ("sh", "-c", "echo one >&2; echo two >&2; exit 3"))
    with pytest.raises(RunError, match=r"bad: expecting exit code 0, got exit code 3; its last lines: one \| two"):
        run_segment([failing], CORES, 10, lambda *_: None)
    with pytest.raises(RunError, match="bad: expecting exit code 0, got signal SIGTERM; it wrote no error"):
        run_segment([MeasuredProgram("bad", ("sh", "-c", "kill $$"))], CORES, 10, lambda *_: None)
    with pytest.raises(RunError, match=r"none: expecting a program that starts, got .*No such file"):
        run_segment([MeasuredProgram("none", ("/nonexistent",))], CORES, 10, lambda *_: None)


def test_a_run_over_its_limit_is_ended_with_all_in_its_group(tmp_path):
    line = f"sleep 60 & echo $! > {tmp_path / 'pid'}; wait"
    with pytest.raises(RunError, match=r"long: expecting an end within 0\.3 s, got none"):
        run_segment([MeasuredProgram("long", ("sh", "-c", line))], CORES, 0.3, lambda *_: None)
    pid = int((tmp_path / "pid").read_text())
    assert _wait_for(lambda: not _runs(pid))


def test_a_journal_cut_at_any_byte_keeps_its_complete_runs(tmp_path):
    path = tmp_path / "runs"
    journal = Journal(path, PROGRAMS, CORES)
    runs = [MeasuredRun(("a", "b"), 0, "a", None, 1.5), MeasuredRun(("a", "b"), 0, "b", "a", 2.5)]
    for run in runs:
        journal.write(run)
    journal.close()
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        again = Journal(path, PROGRAMS, CORES)
        kept = list(again.runs)
        assert kept == runs[: len(kept)]
        assert len(kept) == max(0, whole[:cut].count(b"\n") - 3)
        again.write(runs[1])
        again.close()
        assert Journal(path, PROGRAMS, CORES).runs == [*kept, runs[1]]


@pytest.mark.parametrize("content", ["precious", "precious\n", "a\nb", "{", '{"format": "other"}', "\0" * 9])
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path, content):
    path = tmp_path / "runs"
    path.write_text(content)
    if content == "{":  # a journal that was torn in its first byte
        Journal(path, PROGRAMS, CORES).close()
    else:
        with pytest.raises(ColocationError, match=":1: expecting"):
            Journal(path, PROGRAMS, CORES)
        assert path.read_text() == content


def test_a_journal_follows_no_link_and_trusts_no_file_of_others(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(ColocationError, match="got a link"):
        Journal(tmp_path / "link", PROGRAMS, CORES)
    assert not (tmp_path / "target").exists()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ColocationError, match="got no regular file"):
        Journal(tmp_path / "fifo", PROGRAMS, CORES)
    (tmp_path / "shared").touch()
    (tmp_path / "shared").chmod(0o666)
    with pytest.raises(ColocationError, match="others may write"):
        Journal(tmp_path / "shared", PROGRAMS, CORES)


def test_a_journal_of_other_cores_or_commands_and_malformed_lines_are_refused(tmp_path):
    path = tmp_path / "runs"
    Journal(path, PROGRAMS, CORES).close()
    with pytest.raises(ColocationError, match=r":1: expecting .*cores"):
        Journal(path, PROGRAMS, ([0], [2]))
    with pytest.raises(ColocationError, match=r"a: expecting the command \['true'\], got \['false'\]"):
        Journal(path, [MeasuredProgram("a", ("false",))], CORES)
    text = path.read_text()
    wrong = ("x", "[1]", '["run",["a"],0,"a",null,1]', '["run",["a","b"],0,"a",null,-1]', '["run",["a","b"],0,"a",7,1]')
    for line in (*wrong, json.dumps(["run", ["a", "b"], 0, "a", None, "x"])):
        path.write_text(f"{text}{line}\n")
        with pytest.raises(ColocationError, match=":4: expecting"):
            Journal(path, PROGRAMS, CORES)


@two_cores
def test_a_dry_run_writes_nothing_and_names_the_journal_of_other_commands(tmp_path):
    kept = tmp_path / "heat.json.runs"
    words = ("colocate", "measure", "a=true", "--cores=0-1", "--dry-run", "-o", tmp_path / "heat.json")
    done = command_line(*words, f"--draw={tmp_path / 'heat.svg'}")
    assert (done.returncode, done.stderr) == (0, "1 of 1 cells still needed, unknown time\n")
    assert not list(tmp_path.iterdir())
    Journal(kept, [MeasuredProgram("a", ("false",))], CORES).close()
    before = kept.read_bytes()
    assert f"{kept}: a: expecting the command" in command_line(*words).stderr
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["true", "--cores=0"], "--cores: expecting two or more of"),
        (["true", "--cores=x"], "--cores: expecting numbers and ranges"),
        (["a=true", "--only=a/b"], "--only: expecting PROGRAM/PROGRAM with two of a, got 'a/b'"),
        (["a=true", "--set", "least=4,most=3"], "blocks: expecting at least 1 and at most 3, got 4"),
        (["a=true", "--draw=x.gif"], "--draw: expecting a file name in .svg or .png"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, words, message):
    done = command_line("colocate", "measure", *words, "-o", tmp_path / "heat.json")
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
