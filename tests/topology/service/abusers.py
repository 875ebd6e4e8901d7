"""The topology service under abuse by some users: whether other users' clients are answered. It needs root.

Two users send the most expensive requests (100,000 fields, paths and trees of many hosts) and leave at once; one user
fills as many connections as possible with lines that do not end, and one opens more connections than the service takes;
all of them repeat this. Meanwhile, a fifth user's clients each connect, ask once, and check the answer. At the end the
service is told to end while the abuse goes on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from topompi.topology.client import Address, ask

CLIENTS = 1_000  # connections that the service takes at once
FIRST_USER = 40_001  # of the abusing users, who have successive numbers
NICENESS = 19  # of the abusers, because on other hosts they would not use the service's processors
PATIENCE = 30.0  # seconds for one answer
PAUSE = 0.02  # seconds between two questions of an ordinary client
JOB = 64  # hosts of an ordinary view
MANY = 1_024  # hosts of a large view

Asked = Callable[[Address], bool]


def heavy(address: Address, hosts: list[str]) -> None:
    """Repeat the most expensive requests that a line can hold, and leave without reading the answers."""
    some = hosts[:MANY]
    requests = [
        {"request": "view", "hosts": some[:256], "fields": ["paths"] * 100_000},
        {"request": "view", "hosts": some, "fields": ["paths", "hops", "levels", "sharing", "fabric"]},
        {"request": "view"},
        {"request": "tree"},
    ]
    lines = [json.dumps(request).encode() + b"\n" for request in requests]
    while True:
        for line in lines:
            with suppress(OSError), address.connect() as client:
                client.sendall(line)
            time.sleep(0.01)


def endless(address: Address, hosts: list[str]) -> None:
    """Hold as many bytes as the service lets a client have, in lines that do not end."""
    chunk = b"x" * (1 << 16)
    clients: list[socket.socket] = []
    while True:
        with suppress(OSError):
            clients.append(address.connect())
            clients[-1].settimeout(0.5)
            for _ in range(15):  # a little less than a line may have
                clients[-1].sendall(chunk)
        clients = [one for one in clients if _is_open(one)]


def crowd(address: Address, hosts: list[str]) -> None:
    """Keep more connections open than the service takes."""
    clients: list[socket.socket] = []
    while True:
        clients = [one for one in clients if _is_open(one)]
        with suppress(OSError):
            while len(clients) < 2 * CLIENTS:
                clients.append(address.connect())
        time.sleep(0.1)


def _is_open(client: socket.socket) -> bool:
    """Return whether the service has left a connection open; if not, close this end."""
    client.settimeout(0)
    try:
        client.recv(1 << 16)  # the reason for the closing, or the end
    except BlockingIOError:
        return True
    except OSError:
        pass
    client.close()
    return False


ABUSERS = (heavy, heavy, endless, crowd)


@contextmanager
def abuse(address: Address, hosts: list[str]) -> Iterator[None]:
    """Run each of ``ABUSERS`` as a process of a user of its own until the context ends."""
    processes = []
    for number, act in enumerate(ABUSERS):
        process = os.fork()
        if process == 0:
            try:
                os.nice(NICENESS)
                os.setgid(FIRST_USER + number)
                os.setuid(FIRST_USER + number)
                act(address, hosts)
            finally:
                os._exit(1)
        processes.append(process)
    try:
        yield
        gone = [process for process in processes if os.waitpid(process, os.WNOHANG)[0]]
        if gone:
            raise SystemExit(f"expecting {len(ABUSERS)} users that abuse the service to the end, {len(gone)} ended")
    finally:
        for process in processes:
            os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)


def kinds_of(hosts: list[str]) -> dict[str, tuple[bytes, bytes]]:
    """Return the requests of ordinary clients, and a word that their answers contain, by the name of the kind."""
    job = {"request": "view", "hosts": hosts[:JOB], "fields": ["fabric", "hops"]}
    return {
        "query": (f"query {hosts[0]}:{hosts[0]}\n".encode(), f"{hosts[0]} {hosts[0]}\n".encode()),
        "view": (json.dumps(job).encode() + b"\n", b'"hops":[[0,'),
        "GET /health": (b"GET /health HTTP/1.1\r\n\r\n", b'"status": "ok"'),
    }


def client(address: Address, request: bytes, wanted: bytes, answered: list[str], until: float) -> None:
    """Connect, ask and read the answer, again and again until a time; add "" or the error to ``answered``."""
    while time.monotonic() < until:
        try:
            with address.connect() as connection:
                connection.settimeout(PATIENCE)
                connection.sendall(request)
                got = bytearray()
                while wanted not in got or not got.endswith(b"\n"):
                    chunk = connection.recv(1 << 16)
                    if not chunk:
                        raise ConnectionError("closed")
                    got += chunk
            answered.append("")
        except OSError as error:
            answered.append(f"{type(error).__name__}: {error}")
        time.sleep(PAUSE)


def measure(address: Address, hosts: list[str], seconds: float) -> list[str]:
    """Return the errors of ordinary clients, one of each kind; a kind without an answer is one, too."""
    until, found = time.monotonic() + seconds, dict[str, list[str]]()
    threads = []
    for kind, (request, wanted) in kinds_of(hosts).items():
        found[kind] = []
        threads.append(threading.Thread(target=client, args=(address, request, wanted, found[kind], until)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    silent = [f"{kind}: no answer" for kind, answered in found.items() if "" not in answered]
    return [*silent, *(f"{kind}: {one}" for kind, answered in found.items() for one in answered if one)]


@contextmanager
def serving(source: str, unix: bool) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    """Start a service as a process; provide its address and the process."""
    words = [sys.executable, "-m", "topompi", "topology", "serve", "--topology", source]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        os.chmod(folder, 0o755)
        listen = ["--listen", f"unix:{folder}/socket"] if unix else ["--listen", "127.0.0.1:0"]
        with subprocess.Popen([*words, *listen, "--set", f"clients={CLIENTS}"], stderr=log) as process:
            try:
                yield _address(log.fileno(), process), process
            finally:
                process.kill()


def _address(log: int, process: subprocess.Popen[bytes]) -> Address:
    """Return the address that a service writes to its log."""
    while process.poll() is None:
        for line in os.pread(log, 1 << 16, 0).splitlines():
            event = json.loads(line)
            if event["event"] == "serving":
                return Address.parse(event["addresses"][0])
        time.sleep(0.05)
    raise SystemExit(f"expecting a service, got one that ended: {os.pread(log, 1 << 12, 0).decode()}")


def failures(source: str, unix: bool, seconds: float) -> list[str]:
    """Return the errors of ordinary clients of a service under abuse, and of its end meanwhile."""
    with serving(source, unix) as (address, process):
        hosts = ask(address, {"request": "view", "fields": []}, PATIENCE)["hosts"]
        with abuse(address, hosts):
            found = measure(address, hosts, seconds)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
    return [*found, *([f"status {process.returncode}"] if process.returncode else [])]
