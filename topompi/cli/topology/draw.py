"""``topompi topology draw``: a fabric, a job in it and what its links carry, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import read_text
from ...mapping.graph import GraphError
from ...mapping.placement import place
from ...mapping.rankfiles import read_mapping
from ...mapping.readers import read_graph
from ...schedules.analysis.loads import messages_of
from ...schedules.exports.jsonio import from_json
from ...schedules.registry import ALGORITHMS, make
from ...schedules.segments import pieces_of
from ...topology import Fabric, Report, Routes, TopologyInterface, load
from ...topology.hostnames import require_hosts
from ...topology.studies import without
from ...views.network import network_of
from ...views.picture.fabricscene import Job, fabric_scene
from ...views.picture.loads import Loads, PictureError, link_loads
from ...views.picture.writers import SUFFIXES, check_file, write
from ..hosts import HOSTS_HELP, find_hosts
from ..sizes import parse_bytes
from ..terminal import Limit, console
from .inputs import Without

__all__ = ["draw"]

Integers = NDArray[np.int64]
_LOADS = "What the job exchanges: a graph as for topompi map, a schedule's FILE.json, or COLLECTIVE:ALGORITHM."


def draw(
    source: Annotated[str, typer.Argument(help="A topology source, as for topompi topology show.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=f"A file in {', '.join(SUFFIXES)}.")],
    lfts: Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help=f"The job. {HOSTS_HELP}")] = None,
    ppn: Annotated[int, typer.Option("--ppn", help="Ranks on each host, where --map says nothing.", min=1)] = 1,
    placement: Annotated[str, typer.Option("--place", help="block, cyclic or random:SEED.")] = "block",
    mapping: Annotated[Path | None, typer.Option("--map", help="A map's file: which rank is where.")] = None,
    loads: Annotated[str | None, typer.Option("--loads", help=_LOADS)] = None,
    size: Annotated[str, typer.Option("--bytes", help="Of the schedule's block, or of a message that is cut.")] = "64K",
    down: Without = None,
    limit: Limit = None,
) -> None:
    """Draw the switches by level, the hosts below them, a job's ranks, and what each link carries.

    Levels whose links up carry less than those from below are marked. Where there are many, switches and hosts are
    drawn together, those that the job does not use first. With --loads links are as wide as the time that they need
    for their bytes, each message along its route. An HTML file needs no other: the wheel zooms, the pointer shows
    names and bytes.
    """
    check_file(output)
    nbytes = parse_bytes(size, "--bytes", PictureError)
    with console(to_error=True).status(f"reading {source}") as status:
        routes = load(source, lfts, Report(progress=lambda what, *_: status.update(what))).routes
        assert routes is not None  # load() fills them in
        routes = without(routes, down or [])
        names = _ranks(routes.fabric, hosts, ppn, placement, mapping)
        if names is None and loads is not None:
            names = place(ppn * routes.fabric.num_hosts, list(routes.fabric.hosts), placement)
        rank_host = None if names is None else require_hosts(routes.fabric, names).astype(np.int64)
        carried = None
        if loads is not None and rank_host is not None and names is not None:
            status.update("loads of links")
            carried = _loads(loads, routes, names, rank_host, nbytes)
        status.update(f"drawing {output}")
        job = None if rank_host is None else Job.of_ranks(rank_host)
        write(fabric_scene(routes, source, job, carried), output)


def _ranks(fabric: Fabric, hosts: str | None, ppn: int, placement: str, mapping: Path | None) -> list[str] | None:
    """Host of each rank; None without a job."""
    if mapping is not None:
        found = read_mapping(mapping)
        return [found.hosts[host] for host in found.host_of_rank.tolist()]
    listed = find_hosts(hosts)
    if listed is None:
        return None
    return listed if len(set(listed)) < len(listed) else place(ppn * len(listed), listed, placement)


def _loads(loads: str, routes: Routes, names: list[str], rank_host: Integers, nbytes: int) -> Loads:
    try:
        source, target, volume = _messages(loads, routes, names, nbytes)
    except TopompiError:
        raise
    except (ValueError, GraphError) as error:
        raise PictureError(f"--loads {loads}: {error}") from error
    most = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
    if most > len(rank_host):
        raise PictureError(f"--loads {loads}: expecting at most {len(rank_host)} ranks, as the job has, got {most}")
    return link_loads(routes, rank_host, (source, target, volume))


def _messages(loads: str, routes: Routes, names: list[str], nbytes: int) -> tuple[Any, Any, Any]:
    """Sending rank, receiving rank and bytes of each message."""
    collective, colon, algorithm = loads.partition(":")
    if colon and collective in ALGORITHMS and not Path(loads).exists():
        network = network_of(TopologyInterface.place(names, routes, virtual=True))
        pieces = pieces_of(collective, algorithm, nbytes)
        found = messages_of(make(collective, pieces.name, network, 0, pieces.blocks))
        return found.source, found.destination, found.blocks * -(-nbytes // (pieces.blocks or 1))
    text = read_text(loads, PictureError, "what a job exchanges") if Path(loads).suffix == ".json" else ""
    if '"collective"' in text[:4096]:
        found = messages_of(from_json(text))
        return found.source, found.destination, found.blocks * nbytes
    graph = read_graph(loads)
    return graph.sources, graph.targets, graph.volume
