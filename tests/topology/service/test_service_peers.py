"""The memory of each peer of a topology service: the largest peer is closed, and the others are answered."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import raw, running, wait_until
from tests.support import examples
from topompi.topology.client import Address, ask, ask_line
from topompi.topology.service import connection, identity, peers, state
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.connection import Connection
from topompi.topology.service.identity import peer_of
from topompi.topology.service.peers import Peers, Spent
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore

HEALTH = b"GET /health HTTP/1.1\r\n\r\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")


@pytest.fixture
def peers_by_address(monkeypatch) -> None:
    """Each address of the loopback is a peer."""
    monkeypatch.setattr(connection, "peer_of", lambda socket: socket.getpeername()[0])


def connected(address: Address, source: str) -> socket.socket:
    return socket.create_connection((address.host, address.port), 10, (source, 0))


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0)
    try:
        while client.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def test_lines_without_end_of_one_peer_lock_no_other_one_out(routes, peers_by_address) -> None:
    bounds = Bounds(held_bytes=1 << 22, request_seconds=60)
    first = routes.fabric.hosts[0]
    with running(RouteStore(lambda: routes), bounds) as (service, address), ExitStack() as stack:
        own = stack.enter_context(connected(address, "127.0.0.1"))
        own.sendall(f"query {first[:3]}".encode())
        wait_until(lambda: service.held > 0)
        greedy = [stack.enter_context(connected(address, "127.0.0.2")) for _ in range(64)]
        for client in greedy:
            with suppress(OSError):
                client.sendall(b"x" * 200_000)
        wait_until(lambda: service.counters.dropped > 0)
        for _ in range(20):
            assert ask_line(address, f"query {first}:{first}") == f"{first} {first}"
            assert raw(address, HEALTH).startswith(b"HTTP/1.1 200 OK")
            assert ask(address, {"request": "view", "hosts": [first]})["hosts"] == [first]
        own.sendall(f"{first[3:]}:{first}\n".encode())
        assert own.recv(99) == f"{first} {first}\n".encode()
        assert service.held <= bounds.held_bytes
        assert 0 < sum(map(is_closed, greedy)) < 64


def test_where_there_are_too_many_clients_those_of_the_largest_peer_go(routes, peers_by_address) -> None:
    with running(RouteStore(lambda: routes), Bounds(clients=20)) as (service, address), ExitStack() as stack:
        own = stack.enter_context(connected(address, "127.0.0.1"))
        crowd = [stack.enter_context(connected(address, "127.0.0.2")) for _ in range(60)]
        wait_until(lambda: service.counters.dropped == 41)
        assert [is_closed(client) for client in crowd] == [True] * 41 + [False] * 19
        assert raw(address, HEALTH).startswith(b"HTTP/1.1 200 OK")
        assert ask(address, {"request": "health"})["status"] == "ok"
        assert not is_closed(own)
        assert len(service.connections) <= 20


def test_the_log_names_the_peer_once_for_many_clients_that_were_dropped(routes, peers_by_address, monkeypatch) -> None:
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.1)
    with running(RouteStore(lambda: routes), Bounds(clients=5)) as (service, address), ExitStack() as stack:
        said: list[dict[str, object]] = []
        monkeypatch.setattr(service, "log", lambda event, *_, **fields: said.append({"event": event, **fields}))
        for _ in range(200):
            stack.enter_context(connected(address, "127.0.0.2"))
        wait_until(lambda: sum(int(str(line["count"])) for line in said) == 195)
    assert {(line["event"], line["peer"]) for line in said if "peer" in line} == {("client dropped", "127.0.0.2")}
    assert len([line for line in said if "peer" in line]) < 50


class _Client:
    """A client that holds some bytes."""

    def __init__(self, held: int, drop: Callable[[_Client], None]) -> None:
        self.held, self._drop = held, drop

    def drop(self, reason: str, words: bytes = b"") -> None:
        self._drop(self)


@examples(60)
@given(sizes=st.lists(st.lists(st.integers(0, 400), max_size=8), min_size=1, max_size=6))
def test_room_is_made_by_the_largest_and_no_more_than_needed(sizes: list[list[int]]) -> None:
    found = Peers(Bounds(held_bytes=1000))

    def drop(client: _Client) -> None:
        (peer,) = [one for one in found._peers.values() if client in one.connections]
        del peer.connections[client]  # type: ignore[arg-type]
        found.hold(peer, -client.held)
        gone.append((peer.name, client.held))

    gone: list[tuple[str, int]] = []
    for number, held in enumerate(sizes):
        peer = found.named(str(number))
        for count in held:
            peer.connections[_Client(count, drop)] = None  # type: ignore[index]
            found.hold(peer, count)
    before = {name: peer.held for name, peer in found._peers.items()}
    total = found.held
    found.make_room()
    assert found.held <= 1000
    assert found.held == sum(peer.held for peer in found._peers.values())
    assert bool(gone) == (total > 1000)
    if gone:
        assert found.held > 1000 - 1000 // peers.ROOM - gone[-1][1]
        least = min(before[name] for name, _ in gone)
        kept = [peer.held for name, peer in found._peers.items() if name not in dict(gone)]
        assert all(2 * least >= held for held in kept)  # whoever loses nothing holds no more than whoever does


def test_what_was_spent_is_forgotten_within_a_minute(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(peers, "monotonic", lambda: now)
    spent = Spent(30.0)
    spent.add(30.0)
    assert spent.wait == 0
    spent.add(15.0)
    assert spent.wait == 30.0
    now += 30.0
    assert (spent.amount, spent.wait) == (30.0, 0.0)
    now += 61.0
    assert spent.amount == 0.0


def test_a_peer_that_owes_something_is_known_when_it_comes_again(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(peers, "monotonic", lambda: now)
    found = Peers(Bounds())
    found.named("user 1").seconds.add(20.0)
    found.named("user 2")
    found.forget()
    assert len(found) == 1
    assert found.named("user 1").seconds.amount == 20.0
    now += 60.0
    found.forget()
    assert len(found) == 0


# --- who is at the other end ---


@contextmanager
def two_ends(address: str | tuple[str, int], user: int | None = None) -> Iterator[tuple[socket.socket, int]]:
    """A connection as the service accepts it; the client is a process of a user."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind(address)
        listening.listen()
        process = os.fork()
        if process == 0:
            try:
                if user is not None:
                    os.setuid(user)
                client = socket.socket(family)
                client.connect(listening.getsockname())
                client.recv(1)
            finally:
                os._exit(0)
        accepted, _ = listening.accept()
        with accepted:
            yield accepted, process
        os.waitpid(process, 0)


@as_root
@pytest.mark.parametrize("user", [0, 40_001, 40_002])
def test_users_of_this_host_are_told_apart_at_a_socket_and_at_a_port(user: int) -> None:
    path = "\0topompi-test-peers"  # without a folder, that another user could not look into
    for address in (path, ("127.0.0.1", 0)):
        with two_ends(address, user) as (accepted, _):
            found = peer_of(accepted)
            if address != path and found == "loopback":
                pytest.skip("the kernel does not say whose a socket is")
            assert found == f"user {user}"


def test_a_client_that_has_left_is_nobody() -> None:
    with two_ends(("127.0.0.1", 0)) as (accepted, process):
        if peer_of(accepted) == "loopback":
            pytest.skip("the kernel does not say whose a socket is")
        accepted.sendall(b"x")
        wait_until(lambda: os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
        assert peer_of(accepted) == "gone"


def test_where_the_kernel_does_not_say_whose_it_is_the_address_counts(monkeypatch) -> None:
    def refused(*_: object) -> str:
        raise PermissionError

    class Remote:
        family = socket.AF_INET

        def getpeername(self) -> tuple[str, int]:
            return "192.0.2.7", 5_000

        def getsockname(self) -> tuple[str, int]:
            return "192.0.2.1", 7_471

    assert peer_of(Remote()) == "192.0.2.7"  # type: ignore[arg-type] # no socket of this host
    monkeypatch.setattr(identity, "_owner", refused)
    assert peer_of(Remote()) == "192.0.2.7"  # type: ignore[arg-type]
    for source in ("127.0.0.1", "127.9.9.9"):
        with (
            socket.create_server(("127.0.0.1", 0)) as listening,
            socket.create_connection(listening.getsockname(), 10, (source, 0)),
            listening.accept()[0] as accepted,
        ):
            assert peer_of(accepted) == "loopback"


# --- what one client may take of the event loop ---


class _Taken(asyncio.Transport):
    """A transport whose client takes all at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def test_many_lines_at_once_are_answered_in_turns(routes, monkeypatch) -> None:
    first = routes.fabric.hosts[0]

    async def answered() -> tuple[int, int]:
        one, transport = Connection(Service(RouteStore(lambda: routes), "test")), _Taken()
        one.connection_made(transport)
        one.data_received(f"query {first}:{first}\n".encode() * 15_000)
        at_once = transport.written.count(b"\n")
        while one.postponed:
            await asyncio.sleep(0)
        return at_once, transport.written.count(b"\n")

    at_once, all_in_all = asyncio.run(answered())
    assert 0 < at_once < 7_500
    assert all_in_all == 15_000
