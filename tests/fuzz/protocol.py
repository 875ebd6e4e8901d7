"""``python -m tests.fuzz.protocol``: mutations of requests against a live topology service, over the loopback."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import IO

from tests.fuzz.mutations import mutate
from tests.services import REPORT, TABLES, raw
from tests.support import ROOT
from topompi.errors import TopompiError
from topompi.topology.client import Address
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.requests import FIELDS

CHECK = b"\nquery h0000:h0001\n"  # the last line of each case, whose answer is known
GROWTH = 64 << 20  # bytes that a service may take more at its end than after its first seconds
FIRST = 500  # cases after which memory is measured
_JSON = [
    {"request": "view", "hosts": ["h0000", "h0017", "h0063"], "fields": list(FIELDS), "id": 7},
    {"request": "view", "hosts": "h[0000-0007,0040]", "fields": ["hops"], "id": "x"},
    *({"request": kind} for kind in ("view", "tree", "generation", "health", "counters")),
]
SEEDS = [
    *(json.dumps(request).encode() for request in _JSON),
    b"query h0003:h0060",
    b"query h0001:h0002\nquery h0002:nowhere\n" + json.dumps(_JSON[1]).encode() + b"\nquery h0005:h0000",
    b"GET /metrics HTTP/1.1\r\nHost: head\r\nAccept: */*\r\n\r\n",
    b"GET /health HTTP/1.0\r\n\r\n",
]


def kinds(root: type[TopompiError] = TopompiError) -> set[str]:
    """The names of all errors of ours."""
    return {root.__name__}.union(*(kinds(kind) for kind in root.__subclasses__()))


def judge(data: bytes, answer: bytes, right: bytes) -> str:
    """What is wrong with the answers to a case; empty where nothing is."""
    lines = data.split(b"\n")
    got = answer.split(b"\n")
    if any(line.startswith(b"GET ") for line in lines) or any(len(line) > Bounds.line_bytes for line in lines):
        return ""  # the connection ends there
    if got[-2:] != [right, b""]:
        return f"expecting {right!r} at last, got {got[-2:]!r:.200}"
    if len(got) != len(lines):
        return f"expecting {len(lines)} lines, got {len(got)}"
    for line in got:
        kind = json.loads(line).get("kind", "TopompiError") if line.startswith(b"{") else "TopompiError"
        if kind not in kinds():
            return f"expecting an error of ours, got {line!r:.300}"
    return ""


def resident(process: int) -> int:
    """Bytes of memory that a process has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def campaign(address: Address, process: subprocess.Popen[bytes], seed: int, seconds: float) -> tuple[int, list[str]]:
    """Send cases until the time is over or the service ends; how many, and what went wrong."""
    random, failures, until = Random(seed), [], time.monotonic() + seconds
    right = raw(address, CHECK[1:]).strip()
    count = size = 0
    while time.monotonic() < until and process.poll() is None and len(failures) < 20:
        data = mutate(random.choice(SEEDS), random) + CHECK
        problem = judge(data, raw(address, data, 20), right)
        failures += [f"case {count}, {data[:300]!r}: {problem}"] if problem else []
        count += 1
        size = resident(process.pid) if count == FIRST else size
    if process.poll() is not None:
        failures.append(f"the service ended with {process.returncode}")
    elif size and resident(process.pid) > size + GROWTH:
        failures.append(f"expecting at most {GROWTH} bytes more, got {resident(process.pid) - size}")
    return count, failures


def events(log: IO[bytes]) -> Counter[str]:
    """The events of a service's log by their names."""
    log.seek(0)
    return Counter(json.loads(line)["event"] for line in log.read().splitlines())


def main() -> int:
    """Run, print the counts and what went wrong; status 1 where anything did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.protocol")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    words = [sys.executable, "-m", "topompi", "topology", "serve", "--topology", str(REPORT), "--lfts", str(TABLES)]
    with (
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*words, "--listen", f"unix:{folder}/socket"], stderr=log, cwd=ROOT) as process,
    ):
        try:
            address = Address(path=f"{folder}/socket")
            while process.poll() is None and not os.path.exists(address.path):
                time.sleep(0.05)
            count, failures = campaign(address, process, asked.seed, asked.seconds)
            size = resident(process.pid) >> 20
        finally:
            process.terminate()
            process.wait(20)
        found = events(log)
    failures += [f"the log says {event!r}" for event in found if event.endswith("failed")]
    print(f"{count:,} requests, seed {asked.seed}, {size} MiB, {dict(found)}, {len(failures)} failed")
    print("\n".join(failures), end="\n" * bool(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
