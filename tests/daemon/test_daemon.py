"""The common parts of daemons: unit files, notifications to systemd, counters, logs."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from topompi.daemon import counters, log, notify, unit


def test_the_room_needs_the_standard_library_and_the_errors_alone() -> None:
    names = [f"topompi.daemon.{path.stem}" for path in Path(unit.__file__).parent.glob("*.py")]
    script = (
        f"import importlib, sys; [importlib.import_module(name) for name in {names}];"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)),"
        "*(name for name in sys.modules if name.startswith('topompi.') and 'daemon' not in name))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[:2] == ["__main__", "topompi"]
    assert set(done.stdout.split()[2:]) <= {"topompi.errors", "topompi.visible"}


@pytest.mark.parametrize(
    ("word", "written"),
    [("a b", '"a b"'), ("50%", "50%%"), ("$x", "$$x"), ('"\\', '"\\"\\\\"'), ("plain-1", "plain-1"), ("", '""')],
)
def test_words_reach_a_daemon_through_systemd_as_they_are(word: str, written: str) -> None:
    assert unit.quoted(word) == written


def test_lines_of_a_daemon_override_those_of_all() -> None:
    text = unit.Unit("Shutter", ["/bin/true", "a b"], ["ProtectProc=default"], stop_seconds=2.5, files=8).text()
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert values["ProtectProc"] == "default"  # the last one counts
    assert (values["ExecStart"], values["TimeoutStopSec"], values["LimitNOFILE"]) == ('/bin/true "a b"', "2.5", "8")


def test_the_running_command_is_written_with_whole_paths(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    words = ["slurm", "serve", "file", "--other=file", "--print-unit", "file2"]
    python = [sys.executable, "-P", "-m", "topompi"]
    expected = [*python, "slurm", "serve", f"{tmp_path}/file", f"--other={tmp_path}/file", "file2"]
    assert unit.own_command(words, "serve", without="--print-unit") == expected


def test_no_word_is_sent_where_systemd_did_not_start_the_process(monkeypatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(Path("/no/such/socket")))
    notify.notify("READY=1")


def test_counters_and_gauges_are_prometheus_text() -> None:
    @dataclass
    class Counts:
        moves: int = counters.counter("Jobs moved.")

    assert counters.prometheus("bridge", Counts(3), {"jobs": 2.0}).splitlines() == [
        "# HELP bridge_moves_total Jobs moved.",
        "# TYPE bridge_moves_total counter",
        "bridge_moves_total 3",
        "# TYPE bridge_jobs gauge",
        "bridge_jobs 2",
    ]


def test_an_event_is_a_line_of_json_with_its_fields() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "stale", None, None)
    record.fields = {"source": "a\nb"}
    line = log.AsJson().format(record)
    assert "\n" not in line
    assert {"level": "warning", "event": "stale", "source": "a\nb"}.items() <= json.loads(line).items()
