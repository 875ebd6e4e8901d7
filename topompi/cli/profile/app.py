"""``topompi profile``: the recording of a program's messages, and tables and pictures of their distances and links."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ...inputs.figures import bare_name, cut_middle
from ...inputs.hostlist import read_hosts
from ...inputs.writing import write_text
from ...profile import Profile, ProfileError, read_profile, write_profile
from ...profile.analysis import GRANULARITIES
from ...profile.colours import DEFAULT, PALETTES
from ...profile.export import EXPORTS, export
from ...profile.monitored import read_monitored, record
from ...profile.placing import placed
from ...profile.recording import COUNTS, View
from ...profile.summary import check_hosts, summarise
from ...topology import Report, Routes, TopologyInterface, load_routes
from ..hosts import Placement
from ..inputs import AsJson, Lfts, grouped, reporting
from ..quantities import COUNT
from ..terminal import console
from .advice import commands, hint_of, where
from .table import draw, draw_advice

__all__ = ["app"]


class _Recording(TyperGroup):
    """A group of commands in which a first word that is no command's name begins the command line to be recorded."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["record", *args]
        return super().parse_args(ctx, args)


DRAWN = "With what show, plot and report begin:"

app = typer.Typer(cls=_Recording, help="What a program really sends, by distance.", no_args_is_help=True)

Recorded = Annotated[Path, typer.Argument(metavar="FILE", help="A profile, or a folder of Open MPI's .prof files.")]
Topology = Annotated[str, typer.Option("--topology", help="A topology source, as for topompi topology show.")]
Granularity = Annotated[
    str, typer.Option("--granularity", help=f"One of {', '.join(GRANULARITIES)}; else as was asked for when recording.")
]
Count = Annotated[
    str, typer.Option("--count", help=f"One of {', '.join(COUNTS)}; else as was asked for when recording.")
]
Palette = Annotated[str, typer.Option("--palette", help=f"One of {', '.join(PALETTES)}.")]


@dataclass(frozen=True)
class _Hosts:
    """Options that name the forwarding tables, and hosts of a profile's ranks that replace the recorded hosts.

    :param lfts: path of the forwarding tables, if they are separate from the topology source; else None.
    :param hosts: host list or file of hosts; None for the recorded hosts.
    :param placement: order of the ranks over ``hosts``: ``block``, ``cyclic`` or ``random:SEED``.
    """

    lfts: Lfts = None
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            help="Host list or file: one host per rank, or equally many ranks per host.",
        ),
    ] = None
    placement: Placement = "block"

    def routes(self, topology: str, progress: Report) -> Routes:
        progress.step(f"reading {topology}")
        return load_routes(topology, self.lfts, progress)

    def placed(self, found: Profile, routes: Routes, topology: str) -> TopologyInterface:
        """Place a profile's ranks on the hosts, and return the job's topology.

        :param found: the profile.
        :param routes: routes of the topology.
        :param topology: topology source.
        """
        return placed(found, routes, topology, self.hosts, self.placement)


@app.command("record", context_settings={"allow_interspersed_args": False})
def record_command(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND ...", help="As for a shell: mpirun -n 4 ./app")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The profile's file.")] = Path("run.topoprof"),
    hosts: Annotated[str | None, typer.Option("--hosts", help="Host of each rank: a list or a file.")] = None,
    granularity: Annotated[str, typer.Option("--granularity", help=f"{DRAWN} {', '.join(GRANULARITIES)}.")] = "",
    count: Annotated[str, typer.Option("--count", help=f"{DRAWN} {', '.join(COUNTS)}.")] = "",
) -> None:
    """Run a program of Open MPI, in any language, and record what its ranks send; 'record' may be left out.

    Open MPI's monitoring component counts messages and bytes per pair of ranks below the calls, inside collectives too.
    The exit code is the program's.
    """
    Profile(1, "").view_of(granularity, count)  # raises an error for an unknown option value before the program runs
    if not output.resolve().parent.is_dir():
        raise ProfileError(f"--output: expecting a file in a folder that exists, got {output}")
    found, code = record(command, output.resolve().parent, read_hosts(hosts) if hosts else ())
    write_profile(replace(found, view=View(granularity, count)), output)
    messages, volume = found.sent
    print(
        f"topompi: {output}: {found.size} ranks sent {messages:,} messages, {volume:,} bytes; next: "
        f"topompi profile show {output} --topology SOURCE",
        file=sys.stderr,
    )
    _warn(found)
    if code:
        raise typer.Exit(code)


@app.command()
@grouped
def show(
    recorded: Recorded,
    topology: Topology,
    *,
    job: _Hosts,
    granularity: Granularity = "",
    count: Count = "",
    most: Annotated[int, COUNT("--most", help="Rows of hosts, switches and links.")] = 10,
    hint: Annotated[bool, typer.Option("--hint/--no-hint", help="Look for a better mapping, some seconds.")] = True,
    as_json: AsJson = False,
) -> None:
    """Show messages and bytes by hops, levels, hosts or switches, the busiest links, and what a mapping could save."""
    found = _read(recorded)
    with reporting(ProfileError) as progress:
        routes = job.routes(topology, progress)
        interface = job.placed(found, routes, topology)
        progress.step("links")
        summary = summarise(found, interface, found.view_of(granularity, count, "host"), most, hint=hint)
    if as_json:
        print(json.dumps(summary))
    else:
        draw(console(), summary)
        _warn(found)
    if hint and not as_json and summary["saving"] is not None:
        print(hint_of(summary["saving"], where(interface, recorded, topology, job.lfts)))


@app.command()
@grouped
def advise(
    recorded: Recorded,
    topology: Topology,
    *,
    job: _Hosts,
    library: Annotated[str, typer.Option("--library", help="What MPI.Get_library_version() says.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the savings of a better mapping and other schedules by the models, what is out of reach, and what to run."""
    from ...prediction.libraries import model_of
    from ...profile.advice import advise as advice_of

    found = _read(recorded)
    with reporting(ProfileError) as progress:
        routes = job.routes(topology, progress)
        interface = job.placed(found, routes, topology)
        progress.step("looking for a better order")
        advice = advice_of(found, interface, model_of(library, {}) if library else None)
    advice["run"] = commands(advice, found, topology, where(interface, recorded, topology, job.lfts))
    if as_json:
        print(json.dumps(advice))
        return
    draw_advice(console(), advice)
    for line in advice["run"] or ["nothing to change: no order and no schedule was found that is clearly better"]:
        print(line)


@app.command()
@grouped
def plot(
    recorded: Annotated[list[Path], typer.Argument(metavar="FILE ...", help="Profiles; several are compared.")],
    topology: Topology,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the pictures.")],
    *,
    job: _Hosts,
    granularity: Granularity = "",
    count: Count = "",
    palette: Palette = DEFAULT,
    form: Annotated[str, typer.Option("--format", help="svg or png.")] = "svg",
) -> None:
    """Draw profiles: bytes by hops, who sends to whom, what the links carry, and several runs in one graph."""
    from ...profile.pictures import draw_comparison, draw_traffic  # imported here, because other commands do not draw
    from ...profile.tree import tree_of
    from ...views.picture.writers import write

    output.mkdir(parents=True, exist_ok=True)
    runs = {}
    with reporting(ProfileError) as progress:
        routes = job.routes(topology, progress)
        for path in recorded:
            progress.step(f"drawing {path}")
            found = _read(path)
            interface, view = job.placed(found, routes, topology), found.view_of(granularity, count)
            check_hosts(found, interface)
            runs[path.stem] = found.graph(), interface
            size = f"{interface.num_ranks:,} ranks on {interface.num_hosts:,} hosts"
            title = f"{path.stem}: {size} of {cut_middle(bare_name(topology), 40)}"
            options = (*runs[path.stem], view.granularity, view.count, palette, title)
            for kind in ("histogram", "heat"):
                draw_traffic(output / f"{path.stem}-{kind}.{form}", kind, *options)
            if (scene := tree_of(*runs[path.stem], f"{title}, bytes on its links")) is not None:
                write(scene, output / f"{path.stem}-links.{form}")
    if len(runs) > 1:
        draw_comparison(output / f"comparison.{form}", runs, view.count, palette)
    print("\n".join(sorted(str(path) for path in output.glob(f"*.{form}"))))


@app.command()
@grouped
def report(
    recorded: Annotated[list[Path], typer.Argument(metavar="FILE ...", help="Profiles; several are compared.")],
    topology: Topology,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page, FILE.html.")] = Path("report.html"),
    job: _Hosts,
    granularity: Granularity = "",
    count: Count = "",
    palette: Palette = DEFAULT,
) -> None:
    """Write one HTML page, with a zoomable map and values under the pointer, that needs no network."""
    from ...profile.page import page

    with reporting(ProfileError) as progress:
        routes = job.routes(topology, progress)
        runs = {}
        for path in recorded:
            progress.step(f"reading {path}")
            found = _read(path)
            runs[path.stem] = found, job.placed(found, routes, topology)
        write_text(output, page(runs, palette, granularity, count))


@app.command("export")
def export_command(
    recorded: Recorded,
    output: Annotated[Path, typer.Option("--output", "-o", help=f"FILE.{', FILE.'.join(EXPORTS)}.")],
) -> None:
    """Write the bytes between ranks for other programs: Matrix Market, METIS, MATLAB or NumPy."""
    found = _read(recorded)
    if found.granularity != "process":
        raise ProfileError(f"{recorded}: expecting a profile by process, got one by {found.granularity}")
    export(found.graph(), output)


def _read(recorded: Path) -> Profile:
    return read_monitored(recorded) if recorded.is_dir() else read_profile(recorded)


def _warn(found: Profile) -> None:
    if found.missing:
        first = ", ".join(map(str, found.missing[:5]))
        more = f" and {len(found.missing) - 5} more" if len(found.missing) > 5 else ""
        print(f"topompi: no record of {len(found.missing)} of {found.size} ranks: {first}{more}", file=sys.stderr)
