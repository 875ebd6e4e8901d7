"""Clients of a topology service, and the service's commands."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services import REPORT, TABLES, raw, running, switches, wait_until
from tests.support import ROOT
from topompi.cli.topology.query import ask_quickly
from topompi.cli.topology.service import is_local, query
from topompi.errors import HostError, ServiceError, SourceError
from topompi.topology import TopologyInterface, load
from topompi.topology.client import Address, ask
from topompi.topology.service.store import RouteStore


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tcp://h:1", Address("h", 1)),
        ("h:65535", Address("h", 65535)),
        ("tcp://[::1]:7", Address("::1", 7)),
        ("unix:/run/t.sock", Address(path="/run/t.sock")),
        ("unix:///run/t.sock", Address(path="/run/t.sock")),
    ],
)
def test_addresses_are_read_and_written(text: str, wanted: Address) -> None:
    assert Address.parse(text) == wanted
    assert Address.parse(str(wanted)) == wanted


@pytest.mark.parametrize("text", ["tcp://", "h", "h:", "h:65536", ":1", "a:b:1", "tcp://h:1/x", "unix:", "h h:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="expecting tcp://HOST:PORT or unix:PATH, got"):
        Address.parse(text)


def test_a_dead_service_is_an_error_in_time() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        port = placeholder.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(ServiceError, match="expecting a topology service, got: Connection refused"):
            load(f"tcp://127.0.0.1:{port}", hosts=["h"])
        assert time.monotonic() - began < 2


@contextmanager
def impostor(answers: list[bytes]) -> Iterator[Address]:
    """A server that sends some bytes to each client in turn, then nothing; without bytes it closes at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def live() -> None:
            for answer in answers:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                client.recv(1 << 16)
                client.sendall(answer)
                held.append(client)
                if not answer:
                    client.close()

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)  # ends what waits for a client
        thread.join(5)
        for client in held:
            client.close()


def test_a_first_try_that_fails_is_followed_by_a_second() -> None:
    with impostor([b"", b'{"status": "ok"}\n']) as address:
        assert ask(address, {"request": "health"}) == {"status": "ok"}


def test_a_service_that_never_ends_its_answer_is_given_up() -> None:
    with impostor([b'{"half', b'{"half']) as address:
        began = time.monotonic()
        with pytest.raises(ServiceError, match="no answer in time"):
            ask(address, {"request": "health"}, 0.3)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"[]\n", "expecting an object of JSON, got list"),
        (b"\xff\n", "expecting JSON in UTF-8"),
        (b"{}\n", "field fabric: expecting a value, got none"),
        (b'{"fabric": {"format": "x"}}\n', "field format: expecting"),
        (b'{"fabric": 3}\n', "field format: expecting"),
    ],
)
def test_an_answer_that_is_not_as_wanted_is_refused_with_the_field(answer: bytes, words: str) -> None:
    with impostor([answer, answer]) as address, pytest.raises(SourceError, match=words):
        load(str(address), hosts=["h"])


def test_hosts_that_the_service_does_not_know_are_an_error_of_hosts(served) -> None:
    with pytest.raises(HostError, match=r"expecting some of its 64 hosts .* but 1 of 2 are not: nowhere"):
        load(str(served[1]), hosts=["h0001", "nowhere"])


@contextmanager
def command(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`topompi topology serve` as a process, and its first event."""
    words = [sys.executable, "-m", "topompi", "topology", "serve", "--topology", *map(str, arguments)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT) as process:
        try:
            assert process.stderr is not None
            event = json.loads(process.stderr.readline())
            yield process, event
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "head")),
    ],
)
def test_addresses_beyond_this_host_are_told_apart(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_a_question_about_health_fails_where_the_service_is_stale(routes, capsys) -> None:
    with running(RouteStore(lambda: routes)) as (service, address):
        query("health", str(address))
        assert json.loads(capsys.readouterr().out)["status"] == "ok"
        service.store.problem = "tables break off"
        assert raw(address, b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        with pytest.raises(SystemExit, match="1"):
            query("health", str(address))
        assert json.loads(capsys.readouterr().out)["problem"] == "tables break off"
        query("counters", str(address))
        assert json.loads(capsys.readouterr().out)["requests"] == 3
        with pytest.raises(ServiceError, match=r"expecting a host of .*, got 'nowhere'"):
            query("nowhere:h0000", str(address))
        with pytest.raises(ServiceError, match="expecting one of A:B, health, counters, generation"):
            query("ab", str(address))


def run_query(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "topompi", "topology", "query", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT)


HEAVY = {"numpy", "scipy", "networkx", "yaml", "mpi4py", "typer", "click", "rich", "asyncio", "tarfile", "lzma"}
QUICK = f"""
import sys
sys.argv[0] = "topompi"
from topompi.__main__ import main
try:
    main()
finally:
    print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["h0000:h0000"], 0, "h0000 h0000"),
        (["health"], 0, '"status": "ok"'),
        (["generation"], 0, '"digest"'),
        (["h0000:nowhere"], 1, "expecting a host of"),
        (["h0000"], 1, "expecting one of A:B, health, counters, generation"),
    ],
)
def test_a_question_imports_nothing_heavy(served, words: list[str], code: int, said: str) -> None:
    line = [sys.executable, "-c", QUICK, "topology", "query", *words, "--server", str(served[1])]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_question_in_unusual_words_is_left_to_the_whole_command_line(served) -> None:
    for words in (["--help"], ["a:b", "c:d"], ["--server"], ["--healt"]):
        assert ask_quickly(words) is None


def test_the_command_serves_reads_again_and_drains(tmp_path, routes) -> None:
    path = tmp_path / "topology.sock"
    first, other = routes.fabric.hosts[0], routes.fabric.hosts[40]
    with command(REPORT, "--lfts", TABLES, "--listen", f"unix:{path}") as (process, event):
        assert event["event"] == "serving"
        server = event["addresses"][0]
        done = run_query(f"{first}:{other}", "--server", server)
        view = TopologyInterface.place([first, other], routes)
        assert done.stdout.split() == [first, *switches(routes, view, 0, 1), other]
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(Address.parse(server), {"request": "counters"})["reloads"] == 1)
        client = Address.parse(server).connect()
        client.sendall(b'{"request": "view"}\n')
        client.settimeout(10)
        received = client.recv(1)
        process.send_signal(signal.SIGTERM)
        while chunk := client.recv(1 << 16):
            received += chunk
        assert json.loads(received)["generation"] == 1
        assert process.wait(10) == 0
        assert not path.exists()
        client.close()


def test_a_service_that_was_killed_is_back_at_its_addresses_and_its_clients_with_it(tmp_path, routes) -> None:
    path = tmp_path / "topology.sock"
    with command(REPORT, "--lfts", TABLES, "--listen", f"unix:{path}", "--listen", "127.0.0.1:0") as (process, event):
        port = event["addresses"][1].rpartition(":")[2]
        process.kill()
        process.wait(10)
    assert path.exists()
    with command(REPORT, "--lfts", TABLES, "--listen", f"unix:{path}", "--listen", f"127.0.0.1:{port}") as (_, event):
        for server in event["addresses"]:
            assert load(server, hosts=routes.fabric.hosts[:2]).fabric.num_hosts == 2
        words = [
            sys.executable,
            "-m",
            "topompi",
            "topology",
            "serve",
            "--topology",
            str(REPORT),
            "--listen",
            f"unix:{path}",
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert f"unix:{path}: expecting a path that no service listens at" in done.stderr


@pytest.mark.parametrize(
    ("request_", "limit", "words"),
    [("view", "answer=1M", "1,048,576 bytes of an answer"), ("health", "", "1,048,576 bytes of this answer")],
)
def test_an_answer_without_an_end_is_left_after_its_limit(monkeypatch, request_, limit, words):
    monkeypatch.setenv("TOPOMPI_LIMITS", limit)
    sent = []

    def serve(server):
        for _ in range(2):
            connection, _ = server.accept()
            connection.recv(1000)
            with contextlib.suppress(OSError):
                while True:
                    sent.append(connection.send(b"[" * 65_536))
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(ServiceError, match=words):
            ask(address, {"request": request_}, short=request_ == "health")
    assert sum(sent) < 64 << 20  # both tries, and what the system's buffers hold
