"""The main loop of the topology service: it listens at its addresses, reads changed files, and ends on a signal."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict

from ...errors import ServiceError
from ...machine.daemon.notify import notify
from ...machine.daemon.watch import Watch
from ..client import Address
from .connection import Connection
from .path import SocketPath
from .state import Service
from .unit import OWN_FILES

__all__ = ["listen", "serve"]

BACKLOG = 4_096  # connections; limits those that the system queues until they are accepted
ACCEPTED = 64  # connections; limits those accepted per turn of the event loop, so that connected clients do not wait


def serve(
    service: Service,
    addresses: list[Address],
    watch: Watch | None = None,
    ready: Callable[[list[Address]], None] = print,
    command: tuple[Sequence[str], float] | None = None,
) -> None:
    """Run the service until SIGTERM or SIGINT; on SIGHUP it reads its source again.

    :param service: the service that answers.
    :param addresses: addresses to listen at.
    :param watch: detector of changes of the source's files, which are then read again; None to read them once.
    :param ready: callback that is called with the addresses, including chosen ports, once clients can connect.
    :param command: command that writes the source's files again, and the interval between its runs in seconds; None for
        no command.
    :raises ServiceError: if the service cannot listen at an address.
    """
    duties: list[Callable[[], Coroutine[object, object, None]]] = [service.look]
    if watch is not None:
        duties.append(lambda: service.follow(watch))
    if command is not None:
        duties.append(lambda: service.refresh(*command))
    asyncio.run(_serve(service, addresses, duties, ready))


async def _serve(
    service: Service,
    addresses: list[Address],
    duties: Sequence[Callable[[], Coroutine[object, object, None]]],
    ready: Callable[[list[Address]], None],
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: service.start(service.reload()))
    _raise_file_limit(service)
    paths = [SocketPath(address) for address in addresses if address.path]
    servers = [await listen(service, address, paths) for address in addresses]
    tasks = [loop.create_task(_kept_up(service, duty)) for duty in duties]
    ready([_bound(server, address) for server, address in zip(servers, addresses, strict=True)])
    notify("READY=1")
    await stopped.wait()
    notify("STOPPING=1")
    service.log("draining", clients=len(service.connections))
    for server in servers:
        server.close()
    for path in paths:
        path.remove()
    await service.drain()
    for task in tasks:
        task.cancel()
    service.log("stopped", **asdict(service.counters))


async def _kept_up(service: Service, duty: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run an endless background task, and start it again if an unexpected exception, which is logged, ends it."""
    while True:
        try:
            await duty()
        except Exception as error:
            service.log("duty failed", logging.ERROR, error=f"{type(error).__name__}: {error}")
            await asyncio.sleep(1)


async def listen(service: Service, address: Address, paths: Sequence[SocketPath] = ()) -> asyncio.Server:
    """Listen at an address, with a queue long enough for all clients of a large job.

    :param service: the service that answers.
    :param address: the address to listen at; port 0 takes a free one.
    :param paths: paths of the service's UNIX sockets; one of them belongs to the address if that is a UNIX socket.
    :raises ServiceError: if the service cannot listen at the address.
    """
    loop = asyncio.get_running_loop()
    try:
        if not address.path:
            made = await loop.create_server(lambda: Connection(service), address.host, address.port, backlog=ACCEPTED)
        else:
            bound = next(path for path in paths if path.address == address).bind()
            made = await loop.create_unix_server(lambda: Connection(service), sock=bound, backlog=ACCEPTED)
        for listening in made.sockets:
            with listening.dup() as same:  # asyncio's argument ``backlog`` would limit the connections per turn, too
                same.listen(BACKLOG)
        return made
    except OSError as error:
        raise ServiceError(f"{address}: expecting an address to listen at: {error.strerror or error}") from error


def _bound(server: asyncio.Server, address: Address) -> Address:
    sockets: tuple[socket.socket, ...] = server.sockets
    return address if address.path else Address(address.host, sockets[0].getsockname()[1])


def _raise_file_limit(service: Service) -> None:
    """Raise the limit of open files to the system's maximum, and lower the limit of clients to what it allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    clients = service.bounds.clients
    if resource.RLIM_INFINITY != allowed < clients + OWN_FILES:
        service.log("fewer files than clients may be open", logging.WARNING, files=allowed, clients=clients)
        service.limit_clients(max(1, allowed - OWN_FILES))
