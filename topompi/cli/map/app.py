"""``topompi map``: placement of any MPI program's ranks, written as a file for its launcher."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...inputs.pairs import read_pairs
from ...inputs.writing import write_text
from ...mapping import MAPPERS
from ...mapping.comparison import compare as side_by_side
from ...mapping.comparison import ratio
from ...mapping.drawing import check_plot
from ...mapping.graph import CommunicationGraph
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...mapping.rankfiles import WRITERS, read_mapping, write_mapping
from ...mapping.readers import read_graph
from ...mapping.search import OBJECTIVES, PARTITIONERS, WEIGHTS, Search, routed, solve
from ...mapping.work import Work
from ..inputs import (
    AsJson,
    GraphColumns,
    Partial,
    Recording,
    Settings,
    drawings,
    grouped,
    list_findings,
    reporting,
    settings_of,
)
from ..quantities import FACTOR, RANKS, SEED
from ..terminal import Limit, console
from .draw import check_draw, draw_map, heading, plot_maps
from .place import MapCommandError, PlaceOptions
from .table import draw

__all__ = ["Algorithm", "GivenGraph", "Seed", "make"]


@dataclass(frozen=True)
class GivenGraph:
    """Options that name the file of the communication graph (bytes between ranks), and define how it is read.

    :param graph: path of the file; None if it is not given.
    :param columns: ``matrix``, ``list``, or the names of a list's columns, with commas; None to decide by the content.
    :param ranks: number of ranks, if the graph names fewer; None for those of the graph.
    """

    graph: Recording = None
    columns: GraphColumns = None
    ranks: Annotated[int | None, RANKS("--ranks", "-n", help="Ranks, where the graph names fewer.")] = None

    def path(self) -> Path:
        """Return the path of the graph's file.

        :raises MapCommandError: if it is not given.
        """
        if self.graph is None:
            raise MapCommandError(
                "expecting PROFILE, a file with a communication graph; topompi map --help lists its formats"
            )
        return self.graph

    def read(self) -> CommunicationGraph:
        """Read the graph, and print on standard error what was assumed about its file and may be wrong."""
        notes: list[str] = []
        graph = read_graph(self.path(), self.ranks, self.columns.split(",") if self.columns else (), notes)
        for note in notes:
            console(to_error=True).print(note, soft_wrap=True)
        return graph


_COMPARED = "Two maps to compare: files of any format, or 'given' for the given order."
_MAPPERS = f"One of {', '.join(MAPPERS)}, or your own as module:function."
Algorithm = Annotated[str, typer.Option("--algorithm", "-a", help=_MAPPERS)]
Objective = Annotated[str, typer.Option("--objective", help=f"One of {', '.join(OBJECTIVES)}.")]
Form = Annotated[str | None, typer.Option("--format", help=f"One of {', '.join(WRITERS)}.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The map's file; else standard output.")]
Full = Annotated[bool, typer.Option("--report", help="Show what the map changes.")]
_DRAW = "FILE.svg, .png or .html: the map on its fabric, links by load; bytes=FILE.svg or .png: bytes by distance."
Drawing = Annotated[list[str] | None, typer.Option("--draw", metavar="FILE|bytes=FILE", help=_DRAW)]
Seed = Annotated[int, SEED("--seed", help="Of all that is random.")]


@grouped
def make(
    given: GivenGraph,
    compared: Annotated[list[str] | None, typer.Argument(metavar="[A B]", help=_COMPARED)] = None,
    *,
    place: PlaceOptions,
    algorithm: Algorithm = "best",
    objective: Objective = "hop-bytes",
    form: Form = None,
    output: Output = None,
    report: Full = False,
    draw_files: Drawing = None,
    partial: Partial = False,
    as_json: AsJson = False,
    seed: Seed = 0,
    settings: Settings = None,
    limit: Limit = None,
) -> None:
    """Place a program's ranks on a job's slots, as a file for its launcher.

    The graph is a list 'src dst bytes' or 'u , v = bytes', a matrix of text, a METIS graph, Matrix Market, .npz, a
    graph of networkx (GraphML, GML, JSON, adjacency lists), topompi's graph.json, or the folder of .prof files of Open
    MPI's monitoring; plain, .xz or .gz.

    Formats: rankfile is for Open MPI 4 (--rankfile F), rankfile5 for Open MPI 5 (--map-by rankfile:file=F; the
    default), mpich for Cray MPICH (MPICH_RANK_ORDER), hydra for MPICH's mpiexec (-f F), slurm for srun
    --distribution=arbitrary (SLURM_HOSTFILE=F), plane for srun's distribution of that name if it can express the map,
    json for topompi.

    'best' includes the given order among its candidates, so that its map is never worse than this; the other mappers
    return their own map. Slots are by default the ranks evenly over the hosts, or what the Slurm job says. Settings:
    effort=NUMBER (a factor on the work of annealing in 'best'), partitioner=NAME, weight=NAME (what cuts count).

    With two maps A and B, their figures are compared, and no map is made. Hosts and slots are then those in A's file,
    or, if A is 'given', in B's, unless --hosts or --slots say them.
    """
    given.path()
    place.check()
    pictures = drawings(draw_files, {"map": lambda path: check_draw(path, place), "bytes": check_plot})
    draw_file, bytes_file = pictures.get("map"), pictures.get("bytes")
    if compared:
        if len(compared) != 2 or draw_file is not None:
            raise MapCommandError("expecting two maps, A and B, without --draw FILE, to compare")
        _compared(compared, given, place, bytes_file, partial=partial, as_json=as_json)
        return
    search = Search(algorithm, objective, seed, **_tuned(settings))
    search.check()
    written = _check_format(form, output)
    with reporting(MapCommandError, partial=partial, how=place) as progress:
        progress.step(f"reading {given.graph}")
        found_graph = given.read()
        found_machine = routed(place.build(found_graph.size, progress), objective)
        progress.step(f"mapping {found_graph.size} ranks: {algorithm}")
        order, work = place.given(found_machine, found_graph.size), Work()
        mapping = solve(search, found_graph, found_machine, progress.step, given=order, work=work)
        text = write_mapping(mapping, written)
        maps = {"given": order, "mapped": mapping}
        summary = _summary(found_graph, found_machine, maps, place)
        summary["verdict"] = _verdict(summary, mapping, objective, algorithm + (work.cut and f"; {work.cut}"))
        summary |= {"algorithm": algorithm, "objective": objective, "seed": seed, "cut": work.cut, "format": written}
        if bytes_file is not None:
            plot_maps(bytes_file, given.graph, found_graph, found_machine, maps, summary)
        if draw_file is not None:
            words = heading(given.graph, place, found_graph, algorithm if summary["moved"] else "")
            draw_map(draw_file, place, found_graph, maps["given"], mapping, words, progress)
    list_findings(progress)
    told = {**summary, "slot_of_rank": mapping.slot_of_rank.tolist()} if as_json else None
    _give(text, output, told)
    if not as_json:
        _show(summary, full=report, to_error=output is None)


def _compared(
    names: Sequence[str],
    given: GivenGraph,
    place: PlaceOptions,
    bytes_file: Path | None,
    *,
    partial: bool,
    as_json: bool,
) -> None:
    """Compare two maps, and print the comparison.

    :param names: path of each map's file, or ``given``.
    :param given: options that name the graph.
    :param place: options that define the places for ranks.
    :param bytes_file: path of a picture of the bytes by distance; None for none.
    :param partial: whether a source with faults is read in part.
    :param as_json: whether to print JSON.
    """
    with reporting(MapCommandError, partial=partial, how=place) as progress:
        progress.step(f"reading {given.graph}")
        found_graph = given.read()
        found_machine = place.build(found_graph.size, progress, _allocation(place, *names))
        read = [_read(name, found_machine, found_graph, place) for name in names]
        maps = dict(zip(("A: " + names[0], "B: " + names[1]), read, strict=True))
        summary = _summary(found_graph, found_machine, maps, place)
        summary["verdict"] = _comparison(summary)
        if bytes_file is not None:
            plot_maps(bytes_file, given.graph, found_graph, found_machine, maps, summary)
    list_findings(progress)
    if as_json:
        print(json.dumps(summary))
    else:
        _show(summary, full=True, to_error=False)


def _give(text: str, output: Path | None, told: dict[str, object] | None) -> None:
    """Write a map to its file and print JSON, as far as asked for; if neither was, print the map.

    :param text: the map in the format of its file.
    :param output: path of the file; None to write none.
    :param told: figures to print as JSON; None to print none.
    """
    if output is not None:
        write_text(output, text)
    if told is not None:
        print(json.dumps(told))
    elif output is None:
        print(text, end="")


def _tuned(settings: list[str] | None) -> dict[str, Any]:
    """Return the fields of `Search` that ``--set`` gives."""
    names = {"partitioner": PARTITIONERS, "weight": WEIGHTS}
    parts = [part for text in settings or () for part in text.split(",")]
    words = [text for text in parts if text.partition("=")[0] in names]
    found: dict[str, Any] = dict(read_pairs(words, "--set", "NAME=VALUE", MapCommandError))
    for name, value in found.items():
        if value not in names[name]:
            raise MapCommandError(f"--set {name}: expecting one of {', '.join(names[name])}, got {value!r:.60}")
    numbers = [text for text in parts if text not in words]
    return found | settings_of(numbers, {"effort": (FACTOR, 1.0)}, MapCommandError)


def _check_format(form: str | None, output: Path | None) -> str:
    """Return the name of the map's format; raise before any long work if it is unknown.

    :param form: name of the format; None to choose it by the ending of ``output``.
    :param output: path of the map's file; None if it is printed.
    """
    if form is not None and form not in WRITERS:
        raise MapCommandError(f"expecting --format {', '.join(WRITERS)}, got {form!r}")
    return form or ("json" if output is not None and output.suffix == ".json" else "rankfile5")


def _allocation(place: PlaceOptions, *names: str) -> tuple[tuple[str, ...], list[int]] | None:
    """Return the hosts and slots in the first map's file, or None if the options determine the hosts.

    :param place: the options that define the places for ranks.
    :param names: path of each map's file, or ``given`` for the given order, which has no file.
    """
    files = [name for name in names if name != "given"]
    if place.tree or place.hosts is not None or place.slots is not None or not files:
        return None
    mapping = read_mapping(files[0])
    return mapping.hosts, mapping.slots.tolist()


def _read(name: str, machine: Machine, graph: CommunicationGraph, place: PlaceOptions) -> Mapping:
    mapping = place.given(machine, graph.size) if name == "given" else read_mapping(name, machine)
    if mapping.size != graph.size:
        raise MapCommandError(f"{name}: expecting {graph.size} ranks, as the graph has, got {mapping.size}")
    return mapping


def _summary(
    graph: CommunicationGraph, machine: Machine, maps: dict[str, Mapping], place: PlaceOptions
) -> dict[str, object]:
    """Return the figures of two mappings, with a title, for `topompi.cli.map.table.draw`."""
    hosts = f"{machine.num_hosts:,} host{'s' * (machine.num_hosts != 1)}"
    title = f"{graph.size:,} ranks on {hosts} ({machine.num_slots:,} slots), {place.source}"
    found = side_by_side(graph, machine, maps, from_topology=not place.tree)
    return {"title": title, "source": place.source, **found}


def _verdict(summary: dict[str, Any], mapping: Mapping, objective: str, found: str) -> str:
    """Describe in one line how the map changes the objective; a line about an increase begins with a warning.

    :param summary: figures of the given order and of the map.
    :param mapping: the map.
    :param objective: name of the objective.
    :param found: the algorithm, and whether its search was cut, in words.
    """
    if not summary["moved"]:
        return f"the given order stays: nothing better was found ({found})"
    given, mapped = summary["maps"].values()
    link = "link_load" if given["link_seconds"] is None else "link_seconds"
    key, name = (link, "busiest link") if objective == "link" else ("doubled", "hop-bytes")
    change = ratio(mapped[key], given[key])
    worse = "worse than the given order: " if change is None or change > 1 else ""
    before, after = (100 * side["intra_host_share"] for side in (given, mapped))
    return (
        f"{worse}{name} {_times(change)} the given order's, within hosts {before:.1f} % -> {after:.1f} % "
        f"of the bytes; {summary['moved']:,} of {mapping.size:,} ranks change host ({found})"
    )


def _comparison(summary: dict[str, Any]) -> str:
    if summary["ratio"] == 1:
        return f"hop-bytes are equal; {summary['moved']:,} ranks are on another host"
    return f"B's hop-bytes are {_times(summary['ratio'])} A's; {summary['moved']:,} ranks are on another host"


def _times(value: float | None) -> str:
    return "infinitely many times" if value is None else f"{value:.3f} x"


def _show(summary: dict[str, Any], *, full: bool, to_error: bool) -> None:
    """Print a summary of two mappings.

    :param summary: figures of the mappings.
    :param full: whether to print all figures as a table; else only the verdict, in one line.
    :param to_error: whether to print to standard error; else to standard output.
    """
    screen = console(to_error=to_error)
    if full:
        draw(screen, summary)
    else:
        screen.print(summary["verdict"], soft_wrap=True)
