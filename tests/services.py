"""Topology services in a thread of the tests, and clients that query them."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from tests.support import ROOT
from topompi.machine.daemon.watch import Watch
from topompi.topology import Routes, TopologyInterface, load
from topompi.topology.client import Address
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.server import listen
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore

FABRICS = ROOT / "osu_like_bench" / "fabrics"
REPORT, TABLES = FABRICS / "fattree64.ibnetdiscover.xz", FABRICS / "fattree64.lfts.xz"


def read(source: str | Path = REPORT, lfts: str | Path | None = TABLES) -> Routes:
    routes = load(source, lfts).routes
    assert routes is not None
    return routes


@contextmanager
def running(
    store: RouteStore, bounds: Bounds | None = None, watch: Watch | None = None
) -> Iterator[tuple[Service, Address]]:
    """A service in a thread of this process, at a port of its own."""
    service = Service(store, "test", bounds)
    loop = asyncio.new_event_loop()
    bound: list[int] = []
    begun, stopped = threading.Event(), asyncio.Event()

    async def live() -> None:
        server = await listen(service, Address("127.0.0.1", 0))
        bound.append(server.sockets[0].getsockname()[1])
        duties = [loop.create_task(service.look())]
        if watch is not None:
            duties.append(loop.create_task(service.follow(watch)))
        begun.set()
        await stopped.wait()
        server.close()
        await service.drain()
        for duty in duties:
            duty.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()))
    thread.start()
    assert begun.wait(10)
    try:
        yield service, Address("127.0.0.1", bound[0])
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(20)
        assert not thread.is_alive()
        loop.close()


def raw(address: Address, data: bytes, seconds: float = 5.0) -> bytes:
    """All that a service answers to some bytes until it closes; the client sends no more."""
    with address.connect() as client:
        client.settimeout(seconds)
        with suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        found = b""
        with suppress(ConnectionError):
            while chunk := client.recv(1 << 16):
                found += chunk
        return found


def switches(routes: Routes, view: TopologyInterface, i: int, j: int) -> list[str]:
    links = view.get_network_path_matrix()[i, j]
    assert view.routes is not None
    fabric = view.routes.fabric
    return [fabric.vertex_id(int(vertex)) for vertex in fabric.link_target[links[links >= 0]][:-1]]


def reversed_spines(routes: Routes) -> Routes:
    """The same fabric, with the links up of each leaf in another order."""
    fabric = routes.fabric
    table = routes.next_link.copy()
    for leaf in np.unique(fabric.adapter_leaf):
        up = [link for link in fabric.switch_links if fabric.link_source[link] == fabric.num_adapters + leaf]
        other = dict(zip(up, np.roll(up, 1), strict=True))
        for adapter in range(fabric.num_adapters):
            link = int(table[0, leaf, adapter])
            table[0, leaf, adapter] = other.get(link, link)
    return Routes(fabric, "another order", table)


def pick(routes: Routes, numbers: list[int]) -> list[str]:
    return [routes.fabric.hosts[number % routes.fabric.num_hosts] for number in numbers]


def wait_until(condition, seconds: float = 8.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
