"""The topology service under abuse by some users: whether other users' clients are answered, and how fast.

python -m benchmarks.service_abuse [--source SOURCE] [--lfts TABLES] [--seconds 120] [--unix]; needs root, to be several
users. Two users send the most expensive requests (100,000 fields, paths and trees of many hosts) and leave at once; one
user fills as many connections as possible with lines that do not end, and one opens more connections than the service
takes; all of them repeat this. Meanwhile, a fifth user's clients each connect, ask once, and check the answer. At the
end the service is told to end while the abuse goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from topompi.errors import ServiceError
from topompi.topology.client import Address, ask

from .service import resident

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


@dataclass
class Answers:
    """Seconds of the right answers, and the errors of the others."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        taken = sorted(self.seconds)
        if not taken:
            return "none answered"
        times = [f"{1e3 * value:.1f}" for value in (statistics.median(taken), taken[int(0.99 * len(taken))], taken[-1])]
        return f"{len(taken):,} answered, ms: median {times[0]}, 99 % {times[1]}, maximum {times[2]}"


def kinds_of(hosts: list[str]) -> dict[str, tuple[bytes, bytes]]:
    """Return the requests of ordinary clients, and a word that their answers contain, by the name of the kind."""
    job = {"request": "view", "hosts": hosts[:JOB], "fields": ["fabric", "hops"]}
    return {
        "query": (f"query {hosts[0]}:{hosts[0]}\n".encode(), f"{hosts[0]} {hosts[0]}\n".encode()),
        "view": (json.dumps(job).encode() + b"\n", b'"hops":[[0,'),
        "GET /health": (b"GET /health HTTP/1.1\r\n\r\n", b'"status": "ok"'),
    }


def client(address: Address, request: bytes, wanted: bytes, answers: Answers, until: float) -> None:
    """Connect, ask and read the answer, again and again until a time; record seconds and errors in ``answers``."""
    while time.monotonic() < until:
        began = time.monotonic()
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
            answers.seconds.append(time.monotonic() - began)
        except OSError as error:
            answers.wrong.append(f"{type(error).__name__}: {error}")
        time.sleep(PAUSE)


def measure(address: Address, process: int, hosts: list[str], seconds: float) -> dict[str, Answers]:
    """Return the answers to each kind of request, and print them and the service's memory."""
    until, found = time.monotonic() + seconds, {}
    threads = []
    for kind, (request, wanted) in kinds_of(hosts).items():
        found[kind] = Answers()
        threads.append(threading.Thread(target=client, args=(address, request, wanted, found[kind], until)))
    for thread in threads:
        thread.start()
    largest = 0.0
    while any(thread.is_alive() for thread in threads):
        largest = max(largest, resident(process))
        time.sleep(0.2)
    print(f"resident, the service without its workers, at most: {largest:.0f} MiB", flush=True)
    for kind, answers in found.items():
        print(f"{kind:12}{answers}; {len(answers.wrong)} not answered {answers.wrong[:3] or ''}", flush=True)
    return found


@contextmanager
def serving(source: str, lfts: str | None, unix: bool) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    """Start a service as a process; provide its address and the process."""
    words = [
        sys.executable,
        "-m",
        "topompi",
        "topology",
        "serve",
        "--topology",
        source,
        *(["--lfts", lfts] if lfts else []),
    ]
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


def run(source: str, lfts: str | None, unix: bool, seconds: float) -> int:
    """Abuse a service and print its ordinary clients' times.

    Return the number of failures, which is 0 if all is well.
    """
    with serving(source, lfts, unix) as (address, process):
        hosts = ask(address, {"request": "view", "fields": []}, PATIENCE)["hosts"]
        print(f"{len(hosts):,} hosts, {address}; for {seconds / 10:g} s without abuse:", flush=True)
        measure(address, process.pid, hosts, seconds / 10)
        with abuse(address, hosts):
            print(f"for {seconds:g} s under abuse by {len(ABUSERS)} users:", flush=True)
            found = measure(address, process.pid, hosts, seconds)
            with suppress(ServiceError):
                counters = ask(address, {"request": "counters"}, PATIENCE)
                print(", ".join(f"{name} {counters[name]:,}" for name in counters if name != "generation"))
            process.terminate()
            began = time.monotonic()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            print(f"ended {time.monotonic() - began:.1f} s after SIGTERM, status {process.returncode}", flush=True)
    return sum(len(answers.wrong) for answers in found.values()) + (process.returncode != 0)


def main() -> int:
    """Run the command line; status 1 if a client was not answered or the service did not end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="stampede")
    parser.add_argument("--lfts")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--unix", action="store_true")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("service_abuse: expecting root, to be several users")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return int(run(asked.source, asked.lfts, asked.unix, asked.seconds) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
