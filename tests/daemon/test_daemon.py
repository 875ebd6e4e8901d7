"""The common parts of daemons: unit files, notifications to systemd, counters, logs."""

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from topompi.machine.daemon import counters, log, notify, pages, unit


def test_the_room_needs_the_standard_library_and_the_errors_alone() -> None:
    names = [f"topompi.machine.daemon.{path.stem}" for path in Path(unit.__file__).parent.glob("*.py")]
    script = (
        f"import importlib, sys; [importlib.import_module(name) for name in {names}];"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)),"
        "*(name for name in sys.modules if name.startswith('topompi.') and 'daemon' not in name))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[:2] == ["__main__", "topompi"]
    assert set(done.stdout.split()[2:]) <= {"topompi.errors", "topompi.machine", "topompi.visible"}


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


def request(port: int, text: bytes) -> bytes:
    """The answer to a request; b"" if the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(text)
        with suppress(ConnectionError):
            return client.makefile("rb").read()
    return b""


WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_more_clients_than_the_limit_wait_for_none_and_others_are_served_after_them(monkeypatch) -> None:
    monkeypatch.setattr(pages, "MOST_CLIENTS", 3)
    with pages.served(("127.0.0.1", 0), {"/": lambda: ("text/plain", "x")}) as port, ExitStack() as silent:
        held = [silent.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(3)]
        assert request(port, WHOLE) == b""
        for one in held:
            one.close()
        assert any(request(port, WHOLE).endswith(b"x") for _ in range(100))


@pytest.mark.parametrize(
    "text", [b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 9000, b"\xff" * 20_000 + b"\r\n\r\n", b"\0\r\n\r\n"]
)
def test_a_request_that_is_too_long_or_none_gets_no_page(text: bytes) -> None:
    with pages.served(("127.0.0.1", 0), {"/": lambda: ("text/plain", "x")}) as port:
        assert not request(port, text).startswith(b"HTTP/1.0 200")
        assert request(port, WHOLE).startswith(b"HTTP/1.0 200")


def test_a_client_that_sends_byte_after_byte_is_let_go_after_the_limit_for_the_whole_request(monkeypatch) -> None:
    monkeypatch.setattr(pages, "SECONDS", 0.2)
    with (
        pages.served(("127.0.0.1", 0), {"/": lambda: ("text/plain", "x")}) as port,
        suppress(ConnectionError),
        closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as client,
    ):
        for _ in range(3000):  # the connection ends long before
            client.sendall(b"G")
            time.sleep(0.01)
        pytest.fail("the connection was not closed")


def test_pages_are_made_one_at_a_time() -> None:
    busy, most = [0], [0]

    def page() -> tuple[str, str]:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        busy[0] -= 1
        return "text/plain", "x"

    with pages.served(("127.0.0.1", 0), {"/": page}) as port:
        clients = [threading.Thread(target=request, args=(port, WHOLE)) for _ in range(8)]
        for one in clients:
            one.start()
        for one in clients:
            one.join(30)
    assert most == [1]
