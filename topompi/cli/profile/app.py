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
from ...mpi.profile import Profile, ProfileError, read_profile, write_profile
from ...mpi.profile.analysis import GRANULARITIES
from ...mpi.profile.colours import DEFAULT
from ...mpi.profile.export import EXPORTS, export
from ...mpi.profile.monitored import read_monitored, record
from ...mpi.profile.placing import placed
from ...mpi.profile.recording import COUNTS, ProfileView
from ...mpi.profile.summary import check_hosts, summarise
from ...topology import Report, Routes, TopologyInterface, load_routes
from ..hosts import Placement
from ..inputs import AsJson, Lfts, Topology, grouped, reporting, topology
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


app = typer.Typer(
    cls=_Recording, help="What a program really sends, by distance.", no_args_is_help=True, add_completion=False
)

_OUTPUT = f"FILE.html for the page, FILE.{', FILE.'.join(EXPORTS)} for other programs, else a folder for pictures."
Recorded = Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile, or a folder of Open MPI's .prof files.")]
_BY = f"Units and quantity: {', '.join((*GRANULARITIES, *COUNTS))}, or one of each: host,bytes; else as when recording."
By = Annotated[str, typer.Option("--by", help=_BY)]


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
    by: Annotated[str, typer.Option("--by", help="Units and quantity with which show and export begin.")] = "",
) -> None:
    """Run a program of Open MPI, in any language, and record what its ranks send; 'record' may be left out.

    Open MPI's monitoring component counts messages and bytes per pair of ranks below the calls, inside collectives too.
    The exit code is the program's.
    """
    granularity, count = split_view(by)
    Profile(1, "").view_of(granularity, count)  # raises an error for an unknown option value before the program runs
    if not output.resolve().parent.is_dir():
        raise ProfileError(f"--output: expecting a file in a folder that exists, got {output}")
    found, code = record(command, output.resolve().parent, read_hosts(hosts) if hosts else ())
    write_profile(replace(found, view=ProfileView(granularity, count)), output)
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
    source: Topology,
    *,
    job: _Hosts,
    by: By = "",
    most: Annotated[int, COUNT("--top", help="Rows of hosts, switches and links.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show messages and bytes by hops, levels, hosts or switches, the busiest links, and what a mapping could save."""
    found = _read(recorded)
    with reporting(ProfileError) as progress:
        routes = job.routes(source, progress)
        interface = job.placed(found, routes, source)
        progress.step("links")
        summary = summarise(found, interface, found.view_of(*split_view(by), "host"), most)
    if as_json:
        print(json.dumps(summary))
    else:
        draw(console(), summary)
        _warn(found)
    if not as_json and summary["saving"] is not None:
        print(hint_of(summary["saving"], where(interface, recorded, source, job.lfts)))


@app.command()
@grouped
def advise(
    recorded: Recorded,
    source: Topology,
    *,
    job: _Hosts,
    library: Annotated[str, typer.Option("--library", help="What MPI.Get_library_version() says.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the savings of a better mapping and other schedules by the models, what is out of reach, and what to run."""
    from ...mpi.prediction.libraries import model_of
    from ...mpi.profile.advice import advise as advice_of

    found = _read(recorded)
    with reporting(ProfileError) as progress:
        routes = job.routes(source, progress)
        interface = job.placed(found, routes, source)
        progress.step("looking for a better order")
        advice = advice_of(found, interface, model_of(library, {}) if library else None)
    advice["run"] = commands(advice, found, source, where(interface, recorded, source, job.lfts))
    if as_json:
        print(json.dumps(advice))
        return
    draw_advice(console(), advice)
    for line in advice["run"] or ["nothing to change: no order and no schedule was found that is clearly better"]:
        print(line)


@app.command("export")
@grouped
def export_command(
    recorded: Annotated[list[Path], typer.Argument(metavar="PROFILE", help="Profiles; several are compared.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=_OUTPUT)],
    *,
    source: Annotated[str | None, topology("A topology source; needed for pictures and the page.")] = None,
    job: _Hosts,
    by: By = "",
    form: Annotated[str, typer.Option("--format", help="Of the pictures: svg or png.")] = "svg",
) -> None:
    """Write pictures of profiles, a page with a zoomable map that needs no network, or bytes for other programs.

    Pictures show bytes by hops, who sends to whom, what the links carry, and several runs in one graph. Other programs
    read the bytes between ranks as Matrix Market, METIS, MATLAB or NumPy.
    """
    if output.suffix.removeprefix(".") in EXPORTS:
        found = _read(recorded[0])
        if len(recorded) > 1 or found.granularity != "process":
            raise ProfileError(
                f"{output}: expecting one profile by process, got {len(recorded)} by {found.granularity}"
            )
        export(found.graph(), output)
        return
    if source is None:
        raise ProfileError("expecting --topology, got none")
    with reporting(ProfileError) as progress:
        routes = job.routes(source, progress)
        runs = {}
        for path in recorded:
            progress.step(f"reading {path}")
            found = _read(path)
            runs[path.stem] = found, job.placed(found, routes, source)
        if output.suffix == ".html":
            from ...mpi.profile.page import page

            write_text(output, page(runs, DEFAULT, *split_view(by)))
        else:
            _draw(runs, source, output, split_view(by), form, progress)


def _draw(
    runs: dict[str, tuple[Profile, TopologyInterface]],
    source: str,
    folder: Path,
    by: tuple[str, str],
    form: str,
    progress: Report,
) -> None:
    """Draw pictures of each profile, and of several together, into a folder.

    :param runs: each profile and its placement, by the name of its file.
    :param source: topology source, for titles.
    :param folder: the folder.
    :param by: granularity and count, or empty words.
    :param form: ending of the pictures.
    :param progress: object that shows progress.
    """
    from ...mpi.profile.pictures import (  # imported here, because other commands do not draw
        draw_comparison,
        draw_traffic,
    )
    from ...mpi.profile.tree import tree_of
    from ...views.picture.writers import write

    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, (found, interface) in runs.items():
        progress.step(f"drawing {name}")
        view = found.view_of(*by)
        check_hosts(found, interface)
        drawn[name] = found.graph(), interface
        size = f"{interface.num_ranks:,} ranks on {interface.num_hosts:,} host{'s' * (interface.num_hosts != 1)}"
        title = f"{name}: {size} of {cut_middle(bare_name(source), 40)}"
        options = (*drawn[name], view.granularity, view.count, DEFAULT, title)
        for kind in ("histogram", "heat"):
            draw_traffic(folder / f"{name}-{kind}.{form}", kind, *options)
        if (scene := tree_of(*drawn[name], f"{title}, bytes on its links")) is not None:
            write(scene, folder / f"{name}-links.{form}")
    if len(drawn) > 1:
        draw_comparison(folder / f"comparison.{form}", drawn, view.count, DEFAULT)
    print("\n".join(sorted(str(path) for path in folder.glob(f"*.{form}"))))


def split_view(by: str) -> tuple[str, str]:
    """Return the granularity and the count that a value of ``--by`` names; empty words if it names none.

    :param by: words with commas.
    """
    words = [word for word in by.split(",") if word]
    counts = [word for word in words if word in COUNTS]
    units = [word for word in words if word not in COUNTS]
    if len(counts) > 1 or len(units) > 1 or not {*units} <= {*GRANULARITIES}:
        known = f"one of {', '.join(GRANULARITIES)}, one of {', '.join(COUNTS)}, or one of each"
        raise ProfileError(f"--by: expecting {known}, got {by!r:.60}")
    return "".join(units), "".join(counts)


def _read(recorded: Path) -> Profile:
    return read_monitored(recorded) if recorded.is_dir() else read_profile(recorded)


def _warn(found: Profile) -> None:
    if found.missing:
        first = ", ".join(map(str, found.missing[:5]))
        more = f" and {len(found.missing) - 5} more" if len(found.missing) > 5 else ""
        print(f"topompi: no record of {len(found.missing)} of {found.size} ranks: {first}{more}", file=sys.stderr)
