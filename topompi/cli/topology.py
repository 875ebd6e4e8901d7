"""``topompi topology``: show a fabric, draw it, follow a route, convert between formats."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..errors import RouteError, SourceError
from ..topology import Discovery, HostRoutes, Report, Routes, TopologyInterface, load
from ..topology.hostnames import require_hosts
from ..topology.ibwriter import write_ibnetdiscover
from ..topology.sources import fabricjson
from ..topology.summary import summarise
from .jobhosts import HOSTS_HELP, find_hosts
from .render import draw_summary, draw_tree
from .terminal import Limit, console
from .topologydraw import draw
from .topologyservice import query, serve

__all__ = ["app"]

app = typer.Typer(help="Fabrics and routes.", no_args_is_help=True)
app.command()(draw)
app.command()(serve)
app.command()(query)

_SOURCES = "A topology file, directory or archive, a synthetic fabric in words, or your own module:function."
Source = Annotated[str, typer.Argument(help=_SOURCES)]
Lfts = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")]
Hosts = Annotated[str | None, typer.Option("--hosts", help=HOSTS_HELP)]
Partial = Annotated[bool, typer.Option("--partial", help="Continue with what is sound, and list the rest.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(
    source: Source,
    lfts: Lfts = None,
    hosts: Hosts = None,
    partial: Partial = False,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Show hosts, switches, links, levels, hops, shared links and the cluster tree."""
    with _reading(source, lfts, partial) as (discovery, report):
        routes = _routes(discovery)
        job = find_hosts(hosts)
        names = routes.fabric.hosts if job is None else job
        report.step("cluster tree")
        interface = TopologyInterface.place(names, routes, source=source)
        summary = summarise(routes, interface, job=job is not None)
    summary["problems"], summary["notes"] = report.problems, report.notes
    if as_json:
        print(json.dumps(summary))
        return
    screen = console()
    draw_summary(screen, summary)
    draw_tree(screen, interface)
    _list_findings(report)


@app.command()
def route(
    source: Source,
    sender: Annotated[str, typer.Argument(metavar="A", help="The sending host.")],
    receiver: Annotated[str, typer.Argument(metavar="B", help="The receiving host.")],
    lfts: Lfts = None,
    path: Annotated[int, typer.Option(help="Which of the receiver's paths (LMC above 0).", min=0)] = 0,
    partial: Partial = False,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Print the switches from host A to host B: the host, the switches' GUIDs in order, the other host."""
    with _reading(source, lfts, partial) as (discovery, report):
        routes = _routes(discovery)
        pair = HostRoutes(routes, require_hosts(routes.fabric, [sender, receiver]))
        if path >= routes.num_paths:
            raise RouteError(f"expecting --path below {routes.num_paths}, the number of paths to a host, got {path}")
        switches = _switches_crossed(pair, path, sender, receiver)
    if as_json:
        print(json.dumps({"from": sender, "to": receiver, "switches": switches, "routes": routes.engine}))
    else:
        print(" ".join([sender, *switches, receiver]))
    _list_findings(report)


@app.command()
def export(
    source: Source,
    output: Annotated[str, typer.Option("--output", "-o", help="FILE.json, FILE.ibnetdiscover, or - (JSON).")],
    lfts: Lfts = None,
    partial: Partial = False,
    limit: Limit = None,
) -> None:
    """Write a topology, with the routes that its source holds, as fabric.json; or as an ibnetdiscover report."""
    with _reading(source, lfts, partial) as (discovery, report):
        report.step(f"writing {output}")
        if output.endswith(".ibnetdiscover"):
            text = write_ibnetdiscover(discovery.fabric)
        elif output == "-" or output.endswith(".json"):
            text = fabricjson.write(discovery.fabric, discovery.routes)
        else:
            raise SourceError(f"{output}: expecting a name that ends with .json or .ibnetdiscover, or -")
        if output == "-":
            print(text)
        else:
            Path(output).write_text(text, encoding="utf-8")
    _list_findings(report)


@contextmanager
def _reading(source: str, lfts: Path | None, partial: bool) -> Iterator[tuple[Discovery, Report]]:
    """The topology and the report; while it is read and worked on, a terminal shows what is going on."""
    with console(to_error=True).status(f"reading {source}") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        report = Report(partial=partial, progress=progress)
        yield load(source, lfts, report), report


def _routes(discovery: Discovery) -> Routes:
    assert discovery.routes is not None  # load() fills them in
    return discovery.routes


def _switches_crossed(pair: HostRoutes, path: int, sender: str, receiver: str) -> list[str]:
    if len(set(pair.hosts.tolist())) == 1:
        return []
    fabric = pair.routes.fabric
    links = pair.paths(path)[0, 1]
    links = links[links >= 0]
    if pair.hops[0, 1] < 0 or not len(links):
        raise RouteError(f"no route from {sender} to {receiver}: {pair.routes.engine}")
    return [fabric.vertex_id(int(vertex)) for vertex in fabric.link_target[links[:-1]]]


def _list_findings(report: Report) -> None:
    for kind, messages in (("problem", report.problems), ("note", report.notes)):
        for message in messages:
            print(f"{kind}: {message}", file=sys.stderr)
