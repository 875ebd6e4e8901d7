"""The topology service on a fabric: time to the first answer, queries/s, views of jobs, memory of idle clients.

python -m benchmarks.service SOURCE [--lfts TABLES] [--clients 1000] [--idle 10000]; the service is a process of its
own, and this process asks it over the loopback.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topompi.topology.client import Address, ask

PIPELINE = 1  # queries that a client sends before it waits for answers
REPEATS = 25
SIZES = (8, 16, 32, 64, 128, 256)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--lfts")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--idle", type=int, default=10_000)
    asked = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with serving(asked.source, asked.lfts) as (address, process, began):
        measure(address, process, began, asked)


@contextmanager
def serving(source: str, lfts: str | None) -> Iterator[tuple[Address, int, float]]:
    """Start a service as a process; provide its address, its process id, and its start by the monotonic clock."""
    command = [sys.executable, "-m", "topompi", "topology", "serve", "--topology", source, "--listen", "127.0.0.1:0"]
    began = time.monotonic()
    with subprocess.Popen([*command, *(["--lfts", lfts] if lfts else [])], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        event = json.loads(process.stderr.readline())
        try:
            yield Address.parse(event["addresses"][0]), process.pid, began
        finally:
            process.terminate()


def measure(address: Address, process: int, began: float, asked: argparse.Namespace) -> None:
    """Ask a running service, and print times and memory."""
    ask(address, {"request": "generation"})
    took, used = time.monotonic() - began, processor(process)
    print(f"first answer after {took:.2f} s ({used:.2f} s of a processor), resident {resident(process):.0f} MiB")
    hosts = ask(address, {"request": "view", "fields": []})["hosts"]
    chooser = random.Random(1)
    for size in filter(lambda size: size <= len(hosts), SIZES):
        job = chooser.sample(hosts, size)
        fabric = [timed(address, {"request": "view", "hosts": job}) for _ in range(REPEATS)]
        hops = [timed(address, {"request": "view", "hosts": job, "fields": ["hops"]}) for _ in range(REPEATS)]
        print(f"{size:4} hosts, ms, median and least: fabric {told(fabric)}, hops {told(hops)}")
    rate, used = queries(address, process, hosts, asked.clients, asked.queries)
    print(
        f"{asked.clients} clients: {rate:,.0f} queries/s, "
        f"{asked.queries / used:,.0f} a second of the service's processor"
    )
    before = resident(process)
    clients = [address.connect() for _ in range(asked.idle)]
    while ask(address, {"request": "counters"})["clients"] <= asked.idle:
        time.sleep(0.05)
    print(f"{asked.idle} idle clients: {resident(process) - before:.0f} MiB more, {resident(process):.0f} MiB in all")
    for client in clients:
        client.close()


def told(times: list[float]) -> str:
    """Format the median and the least of some times; the least is the time without other work on the machine."""
    return f"{statistics.median(times):.1f} {min(times):.1f}"


def timed(address: Address, request: dict[str, object]) -> float:
    """Return the milliseconds of one request, with connection and parsing."""
    began = time.monotonic()
    answer = ask(address, request)
    assert "error" not in answer, answer
    return (time.monotonic() - began) * 1e3


def queries(address: Address, process: int, hosts: list[str], clients: int, count: int) -> tuple[float, float]:
    """Return the queries/s of many clients at once, and the processor seconds of the service."""
    chooser = random.Random(2)
    selector = selectors.DefaultSelector()
    sockets = [address.connect() for _ in range(clients)]
    for client in sockets:
        client.setblocking(True)
        selector.register(client, selectors.EVENT_READ, [0])
    requests = [
        "".join(f"query {a}:{b}\n" for a, b in (chooser.sample(hosts, 2) for _ in range(PIPELINE))).encode()
        for _ in range(clients)
    ]
    used, began, sent, taken = processor(process), time.monotonic(), 0, 0
    for client, request in zip(sockets, requests, strict=True):
        client.sendall(request)
        sent += PIPELINE
    number = 0
    while taken < count:
        for key, _ in selector.select(10):
            answering = key.fileobj
            assert isinstance(answering, socket.socket)
            lines = answering.recv(1 << 16).count(b"\n")
            taken += lines
            key.data[0] += lines
            if key.data[0] % PIPELINE == 0 and lines and sent < count:
                number += 1
                answering.sendall(requests[number % clients])
                sent += PIPELINE
    seconds, used = time.monotonic() - began, max(processor(process) - used, 0.01)  # the resolution of its clock
    for client in sockets:
        client.close()
    return taken / seconds, used


def resident(process: int) -> float:
    """Return the MiB of memory that a process holds now."""
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize() / 2**20


def processor(process: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    main()
