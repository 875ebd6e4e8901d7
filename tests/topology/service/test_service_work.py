"""The work of a service for views and trees: its limits per request and per peer, and its end."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import raw, read, running, wait_until
from tests.support import ROOT, examples
from topompi.topology import Routes
from topompi.topology.client import Address, ask
from topompi.topology.service import connection, requests, state, workers
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.counters import ServiceCounters
from topompi.topology.service.peers import PeerAccount
from topompi.topology.service.requests import RequestError
from topompi.topology.service.store import RouteStore
from topompi.topology.service.workers import Workers

SLOW = {"request": "view", "fields": ["hops"], "id": 7}
LINE = json.dumps(SLOW).encode() + b"\n"


@pytest.fixture(scope="module")
def routes() -> Routes:
    return read("xgft:2,2;1,1", None)


@pytest.fixture
def work(monkeypatch) -> Callable[[Callable[[], Any]], None]:
    """Sets what the field ``hops`` of a view takes to work out; clients are looked at more often than once a second."""
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.1)
    return lambda does: monkeypatch.setitem(requests.FIELDS, "hops", lambda view, routes: does())


def children() -> set[int]:
    """The processes that this one has started; those that were not waited for included."""
    return {int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent(path) == os.getpid()}


def _parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_a_view_beyond_its_time_is_ended_and_the_client_told(routes, work) -> None:
    work(lambda: time.sleep(600))
    with running(RouteStore(lambda: routes), Bounds(work_seconds=0.5)) as (service, address):
        answer = ask(address, SLOW, 30)
        assert answer["error"].startswith("expecting an answer within 0.5 seconds of work, got none")
        assert (answer["kind"], answer["id"]) == ("WorkerError", 7)
        assert "error" not in ask(address, {"request": "view", "fields": ["rates"]}, 30)
        assert service.counters.ended == 1


def test_work_that_never_returns_to_python_ends_too(routes, work) -> None:
    work(lambda: 7**10_000_000_000)  # one operation
    with running(RouteStore(lambda: routes), Bounds(work_seconds=0.5)) as (_, address):
        assert "error" in ask(address, SLOW, 30)


def test_work_ends_when_its_client_leaves(routes, work) -> None:
    work(lambda: time.sleep(600))
    with running(RouteStore(lambda: routes), Bounds(work_seconds=300)) as (service, address):
        before = children()
        leaves: list[Callable[[Any], None]] = [lambda client: None, lambda client: client.sendall(b"x" * 3_000_000)]
        for leave in leaves:  # the second one has more to say than is read before it is answered
            client = address.connect()
            client.settimeout(0.5)
            client.sendall(LINE)
            wait_until(lambda: children() != before)
            with contextlib.suppress(OSError):
                leave(client)
            client.close()
            wait_until(lambda: service.workers.busy == 0 and children() == before)
        assert service.counters.ended == 2


def test_a_client_that_is_closed_is_not_kept_open_by_a_worker(routes) -> None:
    with running(RouteStore(lambda: routes)) as (_, address), address.connect() as client:
        client.settimeout(5)
        client.sendall(b"query a:b\n")
        assert client.recv(99).startswith(b"error")
        assert "error" not in ask(address, {"request": "view", "fields": ["rates"]})  # its worker is there from now on
        client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        said = b""
        while part := client.recv(1 << 16):
            said += part
        assert said.startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_waits_is_told_nothing_but_blanks_before_its_answer(routes, work) -> None:
    work(lambda: time.sleep(0.5) or [])
    with running(RouteStore(lambda: routes)) as (_, address):
        said = raw(address, LINE, 30)
        assert said.startswith(b" ")
        assert json.loads(said)["hops"] == []
        assert ask(address, SLOW)["hops"] == []


def test_an_answer_and_its_work_have_a_largest_size(routes, work) -> None:
    work(lambda: "x" * 100_000)
    with running(RouteStore(lambda: routes), Bounds(answer_bytes=50_000)) as (service, address):
        assert "expecting an answer of at most 50,000 bytes, got 100," in ask(address, SLOW)["error"]
        assert service.counters.errors == 1
    work(lambda: bytearray(3 << 30).count(b"x"))
    with running(RouteStore(lambda: routes)) as (service, address):
        for _ in range(2):
            assert ask(address, SLOW)["error"] == "expecting at most 1,073,741,824 bytes of memory for an answer"
        assert service.counters.ended == 0


def test_a_mistake_of_ours_is_an_answer_and_not_the_end(routes, work, monkeypatch) -> None:
    def mistake() -> None:
        raise ZeroDivisionError("one of ours")

    work(mistake)
    with running(RouteStore(lambda: routes)) as (_, address):
        assert ask(address, SLOW)["kind"] == "ZeroDivisionError"
        monkeypatch.setattr(workers.Workers, "answer", lambda *_: mistake())
        assert ask(address, SLOW)["error"] == "one of ours"


def test_a_peer_that_has_spent_its_time_or_bytes_waits_and_others_do_not(routes, work, monkeypatch) -> None:
    monkeypatch.setattr(connection, "peer_of", lambda socket: socket.getpeername()[0])
    work(lambda: time.sleep(0.3) or "x" * 20_000)
    for bounds in (Bounds(peer_seconds=0.2), Bounds(peer_bytes=10_000)):
        with running(RouteStore(lambda: routes), bounds) as (service, address):
            assert "error" not in ask(address, SLOW)
            error = ask(address, SLOW)["error"]
            assert error.startswith("expecting at most ")
            assert "a minute for 127.0.0.1: ask again in" in error
            assert ask(address, {"request": "health"})["status"] == "ok"
            monkeypatch.setattr(connection, "peer_of", lambda _: "another")
            assert "error" not in ask(address, SLOW)
            monkeypatch.setattr(connection, "peer_of", lambda socket: socket.getpeername()[0])
            assert service.counters.refused == 1


def test_views_of_one_peer_keep_no_other_one_waiting(routes, work, monkeypatch) -> None:
    work(lambda: time.sleep(600))
    names = iter(["greedy"] * 5 + ["other"] * 5)
    monkeypatch.setattr(connection, "peer_of", lambda _: next(names))
    bounds = Bounds(work_seconds=100, workers=2)
    with running(RouteStore(lambda: routes), bounds) as (service, address), contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(address.connect()).sendall(LINE)
        wait_until(lambda: service.workers.busy == 5)
        for _ in range(5):
            assert "error" not in ask(address, {"request": "view", "fields": ["rates"]}, 5)


class _Fake:
    """A worker that answers when it is told to."""

    def __init__(self, *_: object) -> None:
        self.generation = None

    async def answer(self, line: bytes) -> tuple[bool, bytearray]:
        await asyncio.sleep(0)
        order.append(line.decode())
        return False, bytearray(line)

    def is_gone(self) -> bool:
        return False

    def end(self) -> None:
        pass


order: list[str] = []


@examples(60)
@given(
    asked=st.lists(st.sampled_from("abcd"), min_size=1, max_size=30),
    spent=st.permutations(range(4)),
    at_once=st.integers(1, 3),
    waiting=st.integers(1, 12),
    leave=st.sets(st.integers(0, 29)),
)
def test_turns_go_to_whoever_spent_least_and_a_full_line_costs_whoever_waits_most(
    asked: list[str], spent: list[int], at_once: int, waiting: int, leave: set[int]
) -> None:
    order.clear()
    bounds = Bounds(workers=at_once, waiting=waiting)
    peers = {name: PeerAccount(name, bounds) for name in "abcd"}
    for name, amount in zip("abcd", spent, strict=True):
        peers[name].seconds.add(amount)

    async def run() -> list[object]:
        pool = Workers(bounds, ServiceCounters(), lambda: None)  # type: ignore[arg-type, return-value]
        tasks = [asyncio.create_task(pool.answer(peers[name], name.encode())) for name in asked]
        await asyncio.sleep(0)  # all have come, the first ones are in work
        for number in leave & set(range(len(tasks))):
            tasks[number].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert pool.busy == 0
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "Worker", _Fake)
        found = asyncio.run(run())
    answered = [name for name, result in zip(asked, found, strict=True) if isinstance(result, tuple)]
    refused = [name for name, result in zip(asked, found, strict=True) if isinstance(result, RequestError)]
    assert sorted(answered) == sorted(order)
    assert all(isinstance(result, tuple | RequestError | asyncio.CancelledError) for result in found)
    assert len(refused) <= max(0, len(asked) - waiting)
    if not leave:
        assert len(refused) == max(0, len(asked) - waiting)
        for name in set(refused):  # whoever lost one had at least as many as whoever lost none
            assert all(answered.count(name) + 1 >= answered.count(other) for other in set(asked) - set(refused))
        if at_once == 1:
            late = [peers[name].seconds.amount for name in order[1:]]
            assert all(earlier <= later + 0.01 for earlier, later in itertools.pairwise(late))


SERVICE = """
import sys, time
from topompi.topology import load
from topompi.topology.client import Address
from topompi.topology.service import requests
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.server import serve
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore

requests.FIELDS["hops"] = lambda view, routes: time.sleep(600)
requests.FIELDS["leaves"] = lambda view, routes: time.sleep(0.7)
times = []

def read():
    times.append(0)
    time.sleep(600 * (len(times) > 1))
    return load("xgft:2,2;1,1").routes

def ready(addresses):
    print(addresses[0], flush=True)

bounds = Bounds(drain_seconds=2, work_seconds=300)
serve(Service(RouteStore(read), "test", bounds), [Address("127.0.0.1", 0)], ready=ready)
"""


def test_a_service_ends_when_it_is_told_to_whatever_it_works_at() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            address = Address.parse(process.stdout.readline().strip())
            with address.connect() as client:
                client.sendall(LINE)
                wait_until(lambda: len(_of_group(process.pid)) == 2)
                process.send_signal(signal.SIGHUP)  # it reads its source, which takes as long
                time.sleep(0.2)
                os.killpg(process.pid, signal.SIGTERM)  # as a terminal and systemd do
                assert process.wait(10) == 0
            wait_until(lambda: not _of_group(process.pid))
            assert process.stderr.read() == ""
        finally:
            process.kill()


def _of_group(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            letter, _, of = path.read_text().rpartition(")")[2].split()[:3]
            found += [int(path.parent.name)] if int(of) == group and letter not in "ZX" else []
    return found


def test_a_worker_ends_with_a_service_that_is_killed(routes) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        address = Address.parse(process.stdout.readline().strip())
        assert "error" not in ask(address, {"request": "view", "fields": ["rates"]}, 30)
        assert len(_of_group(process.pid)) == 2
        process.kill()
        process.wait(10)
        wait_until(lambda: not _of_group(process.pid))
