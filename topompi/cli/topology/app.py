"""``topompi topology``: commands that show a fabric, draw it, follow a route, and convert between formats."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ...errors import RouteError
from ...inputs.limits import current_limits
from ...topology import HostRoutes, TopologyInterface
from ...topology.byleaf import summarise_by_leaf
from ...topology.hostnames import require_hosts
from ...topology.inspection import slow_cables
from ...topology.summary import summarise
from ..hosts import find_hosts
from ..inputs import (
    AsJson,
    JobOnFabric,
    Lfts,
    Source,
    Topology,
    TopologyOptions,
    grouped,
    list_findings,
    reading,
    routes_of,
)
from ..quantities import COUNT
from ..terminal import Limit, console
from .discover import discover
from .draw import draw
from .export import export
from .inside import inside
from .inspection import diff, links
from .service import query, serve
from .tables import draw_summary, draw_tree

__all__ = ["app"]

app = typer.Typer(help="Fabrics, routes, and the inside of a host.", no_args_is_help=True, add_completion=False)
app.command()(draw)
app.command()(discover)
app.command()(export)
app.command()(inside)
app.command()(serve)
app.command()(query)
app.command()(links)
app.command()(diff)


@app.command()
@grouped
def show(
    source: Source,
    job: JobOnFabric,
    *,
    how: TopologyOptions,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Show hosts, switches, links, levels, hops, shared links and the cluster tree."""
    with reading(source, job.lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails, job.down)
        hosts = find_hosts(job.hosts)
        wanted = routes.fabric.hosts if hosts is None else hosts
        if slow := slow_cables(routes.fabric):
            report.note(slow)
        report.step("cluster tree")
        many = hosts is None and len(wanted) ** 2 > current_limits().routes
        summary = summarise_by_leaf(routes, source) if many else None
        interface = None
        if summary is None:
            interface = TopologyInterface.place(wanted, routes, source=source)
            summary = summarise(routes, interface, job=hosts is not None)
    summary["naming"] = discovery.naming
    summary["problems"], summary["notes"] = report.problems, report.notes
    if as_json:
        print(json.dumps(summary))
        return
    screen = console()
    draw_summary(screen, summary)
    if interface is None:
        words = f"cluster tree and shared links are of fewer hosts than {len(wanted):,}: give --hosts"
        screen.print(words, soft_wrap=True)
    else:
        draw_tree(screen, interface)
    list_findings(report)


@app.command()
@grouped
def route(
    sender: Annotated[str, typer.Argument(metavar="A", help="The sending host.")],
    receiver: Annotated[str, typer.Argument(metavar="B", help="The receiving host.")],
    *,
    source: Topology,
    lfts: Lfts = None,
    path: Annotated[int, COUNT(help="Which of the receiver's paths (LMC above 0).", min=0)] = 0,
    how: TopologyOptions,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Print the route from host A to host B: the name of A, the GUIDs of the switches in order, the name of B."""
    with reading(source, lfts, how) as (discovery, report):
        routes = routes_of(discovery, how.rails)
        pair = HostRoutes(routes, require_hosts(routes.fabric, [sender, receiver]))
        if path >= routes.num_paths:
            raise RouteError(f"expecting --path below {routes.num_paths}, the number of paths to a host, got {path}")
        switches = pair.switches(0, 1, path)
    if as_json:
        print(json.dumps({"from": sender, "to": receiver, "switches": switches, "routes": routes.engine}))
    else:
        print(" ".join([sender, *switches, receiver]))
    list_findings(report)
