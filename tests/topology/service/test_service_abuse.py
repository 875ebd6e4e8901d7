"""Malicious clients of a topology service: other clients are answered, and nothing grows. All over the loopback."""

import errno
import random
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.services import raw, read, running, wait_until
from topompi.topology.client import Address
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.store import RouteStore

GIB = 1 << 30
CHUNK = b"x" * (1 << 16)


def long_line(address: Address) -> int:
    """Send a line of 1 GiB, and return how many bytes of it the service let pass before it closed."""
    sent = 0
    with address.connect() as client, suppress(ConnectionError):
        client.settimeout(10)
        while sent < GIB:
            sent += client.send(CHUNK)
    return sent


def crowd(address: Address, count: int) -> int:
    """Connect so many clients at once, each of which asks before it is accepted; how many were answered."""
    chooser, answered = selectors.DefaultSelector(), 0
    with ExitStack() as stack:
        stack.enter_context(chooser)
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            assert client.connect_ex((address.host, address.port)) in (0, errno.EINPROGRESS)
            chooser.register(client, selectors.EVENT_WRITE)
        while chooser.get_map() and (events := chooser.select(20)):
            for key, mask in events:
                client = key.fileobj
                assert isinstance(client, socket.socket)
                if mask & selectors.EVENT_WRITE:
                    client.send(b"query h0000:h0000\n")
                    chooser.modify(client, selectors.EVENT_READ)
                else:
                    answered += client.recv(99) == b"h0000 h0000\n"
                    chooser.unregister(client)
    return answered


def deaf(address: Address) -> None:
    """Ask for whole fabrics until no more can be sent, and read nothing."""
    with address.connect() as client, suppress(OSError):
        client.settimeout(0.2)
        while True:
            client.send(b'{"request":"view"}\n' * 100)


def noise(address: Address, seed: int = 0) -> None:
    raw(address, random.Random(seed).randbytes(1 << 16))


def halves(address: Address) -> None:
    """Leave in the middle of requests of every kind."""
    for text in (
        b"query h00",
        b'{"request": "view", "hosts": ["h0',
        b"GET /metrics HTTP/1.1\r\nHo",
        b"\n" * 999 + b"{",
    ):
        with address.connect() as client:
            client.sendall(text)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leaves with a reset


def wrong(address: Address) -> None:
    """Unknown hosts, and other encodings than UTF-8."""
    lines = ["query nowhere:h0000", "query h0000:" + "x" * 9999, "query é:ü", '{"request":"view","hosts":["nowhere"]}']
    for encoding in ("utf-8", "utf-16", "utf-32", "latin-1"):
        raw(address, "".join(f"{line}\n" for line in lines).encode(encoding))


ABUSES: dict[str, Callable[[Address], object]] = {
    "a line of 1 GiB": long_line,
    "half requests": halves,
    "noise": noise,
    "never reads": deaf,
    "unknown hosts and encodings": wrong,
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Address, Callable[[], bool]]]:
    routes = read()
    with running(RouteStore(lambda: routes), Bounds(stall_seconds=0.5)) as (service, address):
        yield address, lambda: service.held == 0 and not service.connections


@pytest.mark.parametrize("abuse", ABUSES)
def test_after_an_abuse_nothing_is_held_and_others_are_answered(served, abuse: str) -> None:
    address, is_idle = served
    with address.connect() as other:
        other.settimeout(10)
        other.sendall(b"query h0000:h0000\n")
        assert other.recv(99) == b"h0000 h0000\n"
        ABUSES[abuse](address)
        other.sendall(b"query h0001:h0001\n")
        assert other.recv(99) == b"h0001 h0001\n"
    wait_until(is_idle)


def test_of_a_line_without_end_little_more_than_its_bound_is_taken(served) -> None:
    assert long_line(served[0]) < 64 * Bounds.line_bytes  # the system's buffers, and no more


def test_a_crowd_that_connects_at_once_is_answered(served) -> None:
    assert crowd(served[0], 300) == 300
