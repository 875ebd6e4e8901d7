"""``topompi schedule``: schedules of a collective on a fabric, made, compared, proved, drawn and exported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import TopompiError
from ...inputs import parse_json
from ...inputs.pairs import read_pairs
from ...inputs.writing import write_text
from ...schedules import Network
from ...schedules.exports.goal import write_goal
from ...schedules.exports.jsonio import to_json
from ...schedules.network import NoRouteError
from ...schedules.proof import check as prove
from ...schedules.registry import ALGORITHMS, current_name, suited
from ...schedules.segments import pieces_of
from ...topology import Report, TopologyInterface
from ...views.network import network_of
from ...views.scheduled import Made, calibrated, least_time, short_link_names, steps_of, summarise
from ..hosts import Placement, find_hosts
from ..inputs import (
    Adapters,
    AsJson,
    Hosts,
    Lfts,
    Ppn,
    Settings,
    Topology,
    drawings,
    grouped,
    job_view,
    list_findings,
    reporting,
)
from ..quantities import COUNT, RANKS, parse_bytes
from ..terminal import Limit, console
from .table import draw_comparison, draw_steps

__all__ = ["ScheduleCommandError", "schedule"]

_DRAW = "FILE.svg for the tree, or the chart of links; cut=FILE.svg for the cut that proves the least time."
FORMATS = ("goal", "json")


class ScheduleCommandError(TopompiError, ValueError):
    """The requested schedule cannot be made, or a schedule does not do what MPI defines."""


@grouped
def schedule(
    collective: Annotated[str, typer.Argument(help=f"One of {', '.join(ALGORITHMS)}.")],
    *,
    topology: Topology,
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="A name (ring, ring/32K), module:function, FILE.json, or all.")
    ] = "all",
    lfts: Lfts = None,
    hosts: Hosts = None,
    ppn: Ppn = 1,
    placement: Placement = "block",
    root: Annotated[int, RANKS("--root", help="The root of a rooted collective.", min=0)] = 0,
    size: Annotated[str, typer.Option("--bytes", help="Of one message, see below: 65536, 64K or 1M.")] = "64K",
    settings: Settings = None,
    model: Annotated[
        str, typer.Option("--model", help="stampede, ranger, or a JSON file of measurements.")
    ] = "stampede",
    explain: Annotated[bool, typer.Option("--explain", help="Show the bounds, and one algorithm's steps.")] = False,
    as_json: AsJson = False,
    check: Annotated[bool, typer.Option("--check", help="Prove that the schedules do what MPI defines.")] = False,
    draw: Annotated[list[str] | None, typer.Option("--draw", help=_DRAW)] = None,
    export: Annotated[str | None, typer.Option("--export", help=f"One of {', '.join(FORMATS)}, to --output.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File of the export.")] = None,
    striped: Annotated[bool, typer.Option("--striped", help="Divide messages over a host's adapters.")] = False,
    adapters: Adapters,
    limit: Limit = None,
) -> None:
    """Make schedules of a collective, and show what they do to the network and what they cost.

    An algorithm may be yours: module:function, in which the function takes a topompi.schedules.Network and returns a
    Schedule; or one schedule, in a file that --export json wrote. Both are proved first. --set NAME=VALUE gives the
    algorithm a parameter, --set blocks=NUMBER the number of blocks of one message.

    The message of --bytes is, for bcast, reduce and allreduce, the whole; for gather, scatter, allgather and
    reduce_scatter, one rank's share; for alltoall and fft, the part that one rank has for one other. It is cut into
    whole blocks, rounded up.

    The cost takes start-ups from the model and bandwidth from the fabric's fastest host link, or both from a file of
    measurements. The ratio is the time of the steps, each as long as its busiest link, over the bound that no schedule
    can beat. For long messages, the least time on the network's routes and on any follows, with what proves it.
    """
    pictures = drawings(draw, {"schedule": _check_svg, "cut": _check_svg})
    algorithms = _asked(collective, algorithm, export, output, pictures.get("schedule"))
    parameters = _parameters(settings)
    blocks = parameters.pop("blocks", None)
    if blocks is not None and not (isinstance(blocks, int) and 0 < blocks <= COUNT.most):
        raise ScheduleCommandError(f"--set blocks: expecting a whole number above 0, got {blocks!r}")
    nbytes = parse_bytes(size, "--bytes", ScheduleCommandError)
    with reporting(ScheduleCommandError, f"reading {topology}", how=adapters) as report:
        source = topology, lfts, adapters
        interface = job_view(source, find_hosts(hosts), ppn, placement, report, virtual=True)
        network, costs = calibrated(network_of(interface, striped=striped), model)
        if algorithm == "all":
            algorithms = suited(collective, network)
        arguments = network, costs, root, nbytes, blocks, parameters
        made = _all_made(collective, algorithms, arguments, report, skips=algorithm == "all", check=check)
        made.sort(key=lambda one: one.cost.seconds)
        if "schedule" in pictures:
            words = f"{collective} {made[0].name}"
            _draw(made[0], words, topology, (interface, network), pictures["schedule"])
        if "cut" in pictures:
            _draw_cut(collective, (interface, network), root, topology, pictures["cut"])
        if export is not None and output is not None:
            report.step(f"writing {output}")
            _export(made[0], export, output, network.adapters)
        summary = summarise(collective, made, interface, network, root, nbytes, model, proved=check)
    list_findings(report)
    if as_json:
        print(json.dumps(summary))
        return
    screen = console()
    draw_comparison(screen, summary, explain=explain)
    if explain and len(made) == 1:
        draw_steps(screen, steps_of(made[0], interface))


def _check_svg(path: Path) -> None:
    if path.suffix != ".svg":
        raise ScheduleCommandError(f"--draw: expecting a file name in .svg, got {str(path)!r}")


def _draw(made: Made, words: str, topology: str, job: tuple[TopologyInterface, Network], path: Path) -> None:
    """Draw the tree of a schedule, or its chart of links.

    :param made: the schedule.
    :param words: name of the collective and of the algorithm, for the title.
    :param topology: topology source, for the title.
    :param job: the job's hosts, and its network as the schedule was made for it.
    :param path: the picture's file.
    """
    from ...inputs.figures import bare_name, cut_middle
    from ...schedules.drawing.charts import draw

    interface, network = job
    title = f"{words}, {made.schedule.size:,} ranks on {cut_middle(bare_name(topology), 40)}"
    names = short_link_names(interface)
    write_text(path, draw(made.schedule, network, title=title, host_names=interface.hosts, link_names=names))


def _draw_cut(collective: str, job: tuple[TopologyInterface, Network], root: int, topology: str, path: Path) -> None:
    """Draw the cut that proves the least time on any routes.

    :param collective: name of the collective.
    :param job: the job's hosts, and its network.
    :param root: rank of the root.
    :param topology: topology source, for the title.
    :param path: the picture's file.
    """
    from ...topology.hostnames import require_hosts
    from ...views.picture.cut import cut_scene
    from ...views.picture.writers import write

    interface, network = job
    least = least_time(collective, network, root)
    if least is None:
        wanted = f"a collective for long messages ({collective} has no cut) on at most 256 hosts"
        raise ScheduleCommandError(f"--draw cut: expecting {wanted}, got {network.num_hosts:,} hosts")
    if interface.routes is None:
        raise ScheduleCommandError("--draw cut: expecting a topology with switches, got only hosts")
    proof = least.free
    hosts = require_hosts(interface.routes.fabric, interface.hosts).astype("int64")
    write(
        cut_scene(interface.routes, f"{collective}: proof of the least time on {topology}", proof, hosts, proof.words),
        path,
    )


def _asked(
    collective: str, algorithm: str, export: str | None, output: Path | None, draw: Path | None
) -> Sequence[str]:
    """Return the names of the algorithms whose schedules are made; raise before any long work if options are wrong.

    :param collective: name of the collective.
    :param algorithm: name of an algorithm, or ``all``.
    :param export: name of the format; None if nothing is exported.
    :param output: file of the export; None if nothing is exported.
    :param draw: path of the picture; None if none is drawn.
    """
    if collective not in ALGORITHMS:
        raise ScheduleCommandError(f"expecting a collective of {', '.join(ALGORITHMS)}, got {collective!r}")
    if algorithm != "all":
        algorithm = _found(collective, algorithm)
    if export is not None and export not in FORMATS:
        raise ScheduleCommandError(f"expecting --export {', '.join(FORMATS)}, got {export!r}")
    if (export is None) != (output is None):
        raise ScheduleCommandError("expecting --export and --output together")
    if algorithm != "all":
        return [algorithm]
    if export is not None or draw is not None:
        raise ScheduleCommandError("expecting one --algorithm to draw or export, got all")
    return list(ALGORITHMS[collective])


def _found(collective: str, algorithm: str) -> str:
    """Return the name of an algorithm, the new one if it was renamed; raise an error if it does not exist."""
    try:
        pieces_of(collective, algorithm, 1)
    except ValueError as error:
        raise ScheduleCommandError(str(error)) from error
    return current_name(algorithm)


def _parameters(settings: Sequence[str] | None) -> dict[str, object]:
    """Return the values of --set by name, each parsed as JSON (4, true) if it is JSON, else as a word.

    :param settings: texts of the form NAME=VALUE; None if the option is not given.
    """
    parameters: dict[str, object] = {}
    for name, value in read_pairs(settings or (), "--set", "NAME=VALUE", ScheduleCommandError).items():
        try:
            parameters[name] = parse_json(value, "--set", ScheduleCommandError)
        except ScheduleCommandError:
            parameters[name] = value
    return parameters


def _made(collective: str, name: str, *rest: Any) -> Made:
    """Make a schedule by ``Made.make``; if --set is given, a TypeError is reported as the user's error in this option.

    :param collective: name of the collective.
    :param name: name of the algorithm.
    :param rest: other arguments of ``Made.make``; the last has the values of --set.
    """
    try:
        return Made.make(collective, name, *rest)
    except TypeError as error:
        if not rest[-1]:
            raise
        raise ScheduleCommandError(f"{collective} {name}: expecting other values for --set: {error}") from error


def _all_made(
    collective: str, names: Sequence[str], arguments: tuple[Any, ...], report: Report, *, skips: bool, check: bool
) -> list[Made]:
    """Make the schedules of some algorithms, and prove them if asked.

    :param collective: name of the collective.
    :param names: names of the algorithms.
    :param arguments: other arguments of ``Made.make``.
    :param report: receiver of progress and notes.
    :param skips: whether algorithms that need a missing route are left out, with a note.
    :param check: whether each schedule is proved.
    """
    made, missing = [], list[str]()
    for name in names:
        report.step(f"{collective} {name}")
        try:
            made.append(_made(collective, name, *arguments))
        except NoRouteError as error:
            if not skips:
                raise
            missing.append(f"{name}: {error}")
            continue
        if check:
            report.step(f"proving {collective} {name}")
            prove(made[-1].schedule)
    if not made:
        raise ScheduleCommandError(f"{collective}: expecting routes for some algorithm, got {missing[0]}")
    if missing:
        report.note(f"left out for want of routes: {'; '.join(missing)}")
    return made


def _export(made: Made, form: str, output: Path, adapters: int) -> None:
    if made.slices > 1:
        wanted = "an algorithm whose messages are whole or divided into blocks"
        raise ScheduleCommandError(f"--export: expecting {wanted}, got {made.name}, whose parts no format can say")
    if form == "goal":
        write_goal(made.schedule, output, made.block_bytes, adapters)
    else:
        write_text(output, to_json(made.schedule) + "\n")
