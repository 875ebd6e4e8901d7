"""``topompi topology serve`` and ``query``: the topology service, and a question to it."""

from __future__ import annotations

import ipaddress
import logging
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...errors import SourceError
from ...inputs import current_limits
from ...topology import load_routes
from ...topology.client import Address
from ...topology.service.bounds import Bounds
from ..inputs import Lfts, Settings, Topology, settings_of
from ..quantities import COUNT, SECONDS
from ..terminal import Limit
from .query import LISTEN, answer

__all__ = ["is_local", "query", "serve"]

_LISTEN = f"HOST:PORT, or unix:PATH for a UNIX socket; may be repeated; by default {LISTEN}."
_QUESTION = (
    "The sending and the receiving host; or how it is, what it has done, or the number and digest of its routes."
)
_SERVER_HELP = "Where the service listens: tcp://HOST:PORT, HOST:PORT or unix:PATH."


def serve(
    source: Topology,
    lfts: Lfts = None,
    watch: Annotated[bool, typer.Option("--watch", help="Read the source again when its files have changed.")] = False,
    command: Annotated[
        str | None, typer.Option("--command", help="What writes the files again; implies --watch.")
    ] = None,
    every: Annotated[float, SECONDS("--every", help="Seconds between two runs of it.", min=1)] = 300.0,
    listen: Annotated[list[str] | None, typer.Option("--listen", metavar="ADDRESS", help=_LISTEN)] = None,
    settings: Settings = None,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a systemd unit that does this, and end.")
    ] = False,
    limit: Limit = None,
) -> None:
    """Read a topology once and answer the questions of jobs, until SIGTERM; SIGHUP reads it again.

    --set clients=NUMBER bounds the connections at once, --set rate=NUMBER the requests of one client per second. If the
    topology cannot be read again, the service keeps the old one, and
    `topology query health` reports it. The log, one line of JSON per event, goes to standard error.
    """
    from ...machine.daemon.log import log_as_json
    from ...machine.daemon.unit import own_command
    from ...machine.daemon.watch import Watch
    from ...topology.service.server import serve as run  # imports asyncio, which other commands do not need
    from ...topology.service.state import Service
    from ...topology.service.store import RouteStore
    from ...topology.service.unit import unit_text
    from ...topology.sources import is_input

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # ignored until the service can handle it
    addresses = [Address.parse(one) for one in listen or [LISTEN]]
    known = {"clients": (COUNT, Bounds.clients), "rate": (COUNT, Bounds.rate)}
    files = [Path(source), *([] if lfts is None else [lfts])]
    watch = watch or command is not None
    if watch and not files[0].exists():
        raise SourceError(f"{source}: expecting a file or directory to watch, got none")
    wide = [str(address) for address in addresses if address.host and not is_local(address.host)]
    bounds = replace(Bounds(), **settings_of(settings, known, SourceError))
    if print_unit:
        folder = None if command is None else Path(source).resolve().parent
        print(
            unit_text(
                own_command(sys.argv[1:], "serve", without="--print-unit"), addresses, bool(wide), bounds, folder
            ),
            end="",
        )
        return
    log_as_json("topompi.topology.service")
    following = (
        Watch(files, is_input, current_limits().members) if watch else None
    )  # made before the first reading, so that a change during it is seen
    service = Service(RouteStore(lambda: load_routes(source, lfts)), source, bounds)
    for address in wide:
        service.log("listening beyond this host: no client is asked who it is", logging.WARNING, address=address)

    def ready(bound: list[Address]) -> None:
        service.log("serving", addresses=[str(address) for address in bound], hosts=service.health()["hosts"])

    run(service, addresses, following, ready, None if command is None else (shlex.split(command), every))


def query(
    question: Annotated[str, typer.Argument(metavar="A:B|health|counters|generation", help=_QUESTION)],
    server: Annotated[str, typer.Option("--server", help=_SERVER_HELP)] = LISTEN,
) -> None:
    """Ask a topology service for the switches from host A to host B, or how it is; exit code 1 unless it is well."""
    code = answer(question, server)
    if code:
        sys.exit(code)


def is_local(host: str) -> bool:
    """Return whether a service that listens at an address is reached from this host only.

    :param host: an IP address or a name; loopback addresses and ``localhost`` are local.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
