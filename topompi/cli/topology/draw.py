"""``topompi topology draw``: a picture of a fabric, a job on it, and the bytes on its links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ...inputs.figures import bare_name, cut_middle
from ...mapping.placement import place
from ...mapping.rankfiles import read_mapping
from ...topology import Fabric
from ...topology.hostnames import require_hosts
from ...views.picture.loads import PictureError
from ...views.picture.writers import SUFFIXES, check_file, write
from ..hosts import HOSTS_HELP, Placement, find_hosts
from ..inputs import (
    Adapters,
    GraphColumns,
    Lfts,
    NameRule,
    Names,
    Partial,
    Rails,
    Source,
    Without,
    list_findings,
    reporting,
)
from ..quantities import PER_HOST, parse_bytes
from ..terminal import Limit

__all__ = ["draw"]

_LOADS = "What the job exchanges: a graph as for topompi map, a schedule's FILE.json, or COLLECTIVE:ALGORITHM."


def draw(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"A file in {', '.join(SUFFIXES)}.")],
    lfts: Lfts = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help=f"The job. {HOSTS_HELP}")] = None,
    ppn: Annotated[int, PER_HOST("--ppn", help="Ranks on each host, where --map says nothing.")] = 1,
    placement: Placement = "block",
    mapping: Annotated[Path | None, typer.Option("--map", help="A map's file: which rank is where.")] = None,
    loads: Annotated[str | None, typer.Option("--loads", help=_LOADS)] = None,
    columns: GraphColumns = None,
    size: Annotated[str, typer.Option("--bytes", help="Of the schedule's block, or of a message that is cut.")] = "64K",
    down: Without = None,
    rails: Rails = None,
    names: Names = None,
    rule: NameRule = None,
    partial: Partial = False,
    limit: Limit = None,
) -> None:
    """Draw the switches by level, the hosts below them, a job's ranks, and what each link carries.

    Levels whose links up carry less than the links from below are marked. If there are too many switches and hosts,
    they are drawn together, those that the job does not use first. With --loads, the width of a link is the time that
    it needs for its bytes, each message along its route. An HTML file needs no other file: the wheel zooms, the pointer
    shows names and bytes.
    """
    from ...views.picture.exchanged import exchanged_loads  # imported here, because other commands do not draw
    from ...views.picture.fabricscene import DrawnJob, fabric_scene

    check_file(output)
    nbytes = parse_bytes(size, "--bytes", PictureError)
    adapters = Adapters(rails, names, rule)
    with reporting(PictureError, f"reading {source}", partial=partial, how=adapters) as report:
        routes = adapters.read(source, lfts, report, down)
        ranks = _ranks(routes.fabric, hosts, ppn, placement, mapping)
        if ranks is None and loads is not None:
            ranks = place(ppn * routes.fabric.num_hosts, list(routes.fabric.hosts), placement)
        rank_host = None if ranks is None else require_hosts(routes.fabric, ranks).astype(np.int64)
        carried = None
        if loads is not None and ranks is not None:
            report.step("loads of links")
            told = columns.split(",") if columns else ()
            carried = exchanged_loads(loads, routes, ranks, nbytes, told, report.notes)
        report.step(f"drawing {output}")
        job = None if rank_host is None else DrawnJob.of_ranks(rank_host)
        fabric = f"fabric {cut_middle(bare_name(source), 60)}"
        title = f"The {fabric}" if job is None else f"A job of {len(job.hosts):,} hosts on the {fabric}"
        write(fabric_scene(routes, title if loads is None else f"{title}: bytes on its links", job, carried), output)
    list_findings(report)


def _ranks(fabric: Fabric, hosts: str | None, ppn: int, placement: str, mapping: Path | None) -> list[str] | None:
    """Return the name of the host of each rank of the job to draw; None if the options define no job.

    :param fabric: the fabric.
    :param hosts: value of --hosts; None if it is not given.
    :param ppn: number of ranks on each host, unless a host is listed several times.
    :param placement: order of the ranks over the hosts: ``block``, ``cyclic`` or ``random:SEED``.
    :param mapping: path of a map's file, which is used in place of the others; None if there is none.
    """
    if mapping is not None:
        found = read_mapping(mapping)
        return [found.hosts[host] for host in found.host_of_rank.tolist()]
    listed = find_hosts(hosts)
    if listed is None:
        return None
    return listed if len(set(listed)) < len(listed) else place(ppn * len(listed), listed, placement)
