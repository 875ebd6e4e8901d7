"""Options that several commands have, dataclasses that group them, and reading of topologies with shown progress."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from ..errors import SourceError, TopompiError
from ..inputs.pairs import read_pairs
from ..topology import Discovery, Report, Routes, TopologyInterface, load
from ..topology.hostnames import require_joined
from ..topology.hostnaming import HostNaming, naming_of
from .hosts import HOSTS_HELP
from .quantities import COUNT, PER_HOST, Quantity, parse_bytes
from .terminal import console

__all__ = [
    "Adapters",
    "AsJson",
    "ClusterName",
    "First",
    "GraphColumns",
    "Hosts",
    "JobOnFabric",
    "Lfts",
    "Partial",
    "Ppn",
    "Recording",
    "Settings",
    "Source",
    "Topology",
    "TopologyOptions",
    "Without",
    "drawings",
    "grouped",
    "job_view",
    "list_findings",
    "reading",
    "reporting",
    "require_source",
    "routes_of",
    "settings_of",
    "topology",
]

T = TypeVar("T")

_SOURCES = "A topology file, directory or archive, a synthetic fabric in words, or your own module:function."
TOPOLOGY = "TOPOMPI_TOPOLOGY"  # variable of the environment that stands for the option or the argument
Source = Annotated[str, typer.Argument(help=_SOURCES, envvar=TOPOLOGY)]


def topology(words: str) -> object:
    """Declare the option ``--topology``.

    :param words: help, which says what stands for a topology that is not given.
    """
    return typer.Option("--topology", metavar="SOURCE", envvar=TOPOLOGY, help=words)


Topology = Annotated[str, topology("A topology source, as for topompi topology show.")]
Lfts = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")]
Hosts = Annotated[str | None, typer.Option("--hosts", help=HOSTS_HELP)]
First = Annotated[int | None, COUNT("--first", help="Only the first jobs of the log.")]
Ppn = Annotated[int, PER_HOST("--ppn", help="Ranks on each host.")]
_COLUMNS = (
    "Of a table in a graph's file: matrix, list, or a list's columns: src,dst,bytes, src,dst,count,bytes; - skips one."
)
GraphColumns = Annotated[str | None, typer.Option("--columns", help=_COLUMNS)]
Partial = Annotated[bool, typer.Option("--partial", help="Continue with what is sound, and list the rest.")]
_WITHOUT = "A switch that is down, by id or name, or SWITCH:PORT for a cable; may be given several times."
Without = Annotated[list[str] | None, typer.Option("--without", metavar="SWITCH", help=_WITHOUT)]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting: see below.")]
_PROFILE = "What each rank sends to each: a profile, or another file with a communication graph."
Recording = Annotated[Path | None, typer.Argument(metavar="PROFILE", help=_PROFILE)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_CLUSTER_NAME = "Of several clusters in an output of Slurm, the one that is read; with --slurm, the one that is asked."
ClusterName = Annotated[str | None, typer.Option("--cluster-name", metavar="NAME", help=_CLUSTER_NAME)]


_NAMES = "Host names of InfiniBand adapters: a GUID (of a port, node or system image) and a name per line."
Names = Annotated[str | None, typer.Option("--names", metavar="FILE", help=_NAMES)]
_RULE = "Regular expression whose group 'host', or first group, is the host in a node description."
NameRule = Annotated[str | None, typer.Option("--name-rule", metavar="REGEX", help=_RULE)]

_LABELS = (
    "Keys of the labels that name the switches above a node of Kubernetes, from the topmost to the leaf: K1,K2,K3."
)
Labels = Annotated[str | None, typer.Option("--labels", metavar="KEYS", help=_LABELS)]


_RAILS = (
    "Only these adapters: adapter=mlx5_[0-7], switch=leaf*, host=gpu*, rate>=50 (GB/s); ! before one leaves them out."
)
Rails = Annotated[list[str] | None, typer.Option("--rails", metavar="WHICH", help=_RAILS)]


def grouped(command: Callable[..., T]) -> Callable[..., T]:
    """Convert a function to one that typer can take as a command, with dataclasses as groups of options.

    In the place of each parameter that is annotated with a dataclass, the result has a parameter per field. A field
    with ``init=False`` is left out.

    :param command: the function of the command.
    """
    groups: dict[str, dict[str, inspect.Parameter]] = {}
    options: dict[str, inspect.Parameter] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and is_dataclass(kind):
            groups[name] = _options(kind)
            options |= groups[name]
        else:
            options[name] = parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)

    @functools.wraps(command)
    def run(**given: object) -> T:
        for name, members in groups.items():
            given[name] = hints[name](**{member: given.pop(member) for member in members})
        return command(**given)

    run.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: option.annotation for name, option in options.items()}
    return run


def _options(group: type) -> dict[str, inspect.Parameter]:
    """Return a parameter of a signature, by name, for each field of a dataclass that its constructor takes."""
    hints = get_type_hints(group, include_extras=True)
    return {
        field.name: inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
        if field.init
    }


@dataclass(frozen=True)
class Adapters:
    """Options that define the hosts of InfiniBand adapters, the adapters that are used, and the switches above nodes.

    :param rails: conditions that used adapters meet, see `topompi.topology.inspection.select_rails`; None to use all.
    :param names: path of a file with host names by GUID; None if there is none.
    :param rule: regular expression that finds the host name in a node description; None for the default.
    :param labels: keys of labels, separated by commas, see `Report`; None for the usual ones.
    """

    rails: Rails = None
    names: Names = None
    rule: NameRule = None
    labels: Labels = None

    @property
    def naming(self) -> HostNaming:
        """The rules by which the host of each adapter is found."""
        return naming_of(self.names, self.rule)

    def read(self, source: str, lfts: Path | None, report: Report, down: Sequence[str] | None = None) -> Routes:
        """Read a topology, and return the routes between the adapters that are used.

        :param source: topology source.
        :param lfts: path of forwarding tables that are not part of the source; None if there are none.
        :param report: object that collects problems and shows progress, made with `naming`.
        :param down: switches and cables that are down, see `topompi.topology.inspection.without`.
        """
        return routes_of(load(source, lfts, report), self.rails, down)


@dataclass(frozen=True)
class TopologyOptions(Adapters):
    """Options for the reading of a topology: those of `Adapters`, and the treatment of faults.

    :param partial: whether a source with faults is read in part; else a fault is an error.
    """

    partial: Partial = False


@dataclass(frozen=True)
class JobOnFabric:
    """Options that name a job's hosts on a topology, and switches and cables that are down.

    :param lfts: path of the forwarding tables, if they are separate from the source; else None.
    :param hosts: value of ``--hosts``, see `find_hosts`.
    :param down: switches (by id or name) and cables (SWITCH:PORT) that are down; None if all work.
    """

    lfts: Lfts = None
    hosts: Hosts = None
    down: Without = None


def require_source(source: str | None, lfts: Path | None, how: Adapters) -> None:
    """Raise an error if options for the reading of a topology source are given, and no source.

    :param source: the source; None if Slurm's switches replace it.
    :param lfts: path of forwarding tables.
    :param how: options for the reading.
    """
    if source is None and (lfts or how.rails or how.names or how.rule):
        raise SourceError("expecting --topology beside --lfts, --rails, --names and --name-rule, got none")


@contextmanager
def reporting(
    error: type[TopompiError],
    words: str = "reading",
    *,
    partial: bool | None = None,
    how: Adapters | None = None,
) -> Iterator[Report]:
    """Provide a `Report` for the reading of an input, and show the progress on a terminal until the context ends.

    :param error: class of the error that is raised instead of a ValueError, so that the user sees one line.
    :param words: text shown until there is progress.
    :param partial: value of the command's option --partial: True if an input with faults is read in part. If it is
        False, error messages recommend the option if it would help. None if the command has no such option.
    :param how: options about hosts and switches; None for the default rules.
    """
    with console(to_error=True).status(words) as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        how = how or Adapters()
        labels = tuple(key.strip() for key in (how.labels or "").split(",") if key.strip())
        report = Report(partial=bool(partial), progress=progress, naming=how.naming, labels=labels)
        try:
            yield report
        except TopompiError as problem:
            if partial is False and problem is report.refused and "--partial" not in str(problem):
                raise type(problem)(f"{problem.args[0]}; --partial reads the rest") from problem
            raise
        except ValueError as problem:
            raise error(str(problem)) from problem


@contextmanager
def reading(source: str, lfts: Path | None, how: TopologyOptions) -> Iterator[tuple[Discovery, Report]]:
    """Read a topology; provide the topology and the report on it, and show progress until the context ends.

    :param source: topology source as the user gave it.
    :param lfts: path of the forwarding tables, if they are separate from the source; else None.
    :param how: options for the reading, except ``rails``, which `routes_of` takes.
    """
    with reporting(SourceError, f"reading {source}", partial=how.partial, how=how) as report:
        yield load(source, lfts, report), report


def routes_of(discovery: Discovery, rails: Sequence[str] | None = None, down: Sequence[str] | None = None) -> Routes:
    """Return the routes of a topology, without adapters that are not used, and without parts that are down.

    :param discovery: topology as ``load`` returns it, with routes.
    :param rails: conditions that used adapters meet, see `topompi.topology.inspection.select_rails`; None to use all.
    :param down: switches and cables that are down, see `topompi.topology.inspection.without`.
    """
    from ..topology.inspection import select_rails, without  # imported here, because few commands take these options

    assert discovery.routes is not None  # load() always sets them
    return without(select_rails(discovery.routes, rails or [], discovery.devices), down or [])


def settings_of(
    texts: Sequence[str] | None, known: Mapping[str, tuple[Quantity, float | None]], error: type[TopompiError]
) -> dict[str, Any]:
    """Return the value of each setting, from ``--set`` or the default.

    :param texts: values of ``--set``, each NAME=VALUE, or several of these with commas; None if there are none.
    :param known: kind of number, and default, of each setting by its name.
    :param error: class of the error that is raised if a name is unknown, or a value is out of bounds.
    """
    found = {name: default for name, (_, default) in known.items()}
    parts = [part for text in texts or () for part in text.split(",")]
    for name, text in read_pairs(parts, "--set", "NAME=VALUE", error).items():
        if name not in known:
            raise error(f"--set: expecting a setting of {', '.join(known)}, got {name!r:.60}")
        kind = known[name][0]
        found[name] = parse_bytes(text, f"--set {name}", error) if kind.in_bytes else kind.parse(text, name, error)
    return found


def drawings(texts: Sequence[str] | None, kinds: Mapping[str, Callable[[Path], object]]) -> dict[str, Path]:
    """Return the picture's file of each kind that ``--draw`` asks for, after a check of its name.

    :param texts: values of ``--draw``: FILE for the first kind, or KIND=FILE; None if there are none.
    :param kinds: function that checks the name of a file, by the kind of the picture.
    """
    found: dict[str, Path] = {}
    for text in texts or ():
        kind, equals, file = text.partition("=")
        kind, file = (kind, file) if equals and kind in kinds else (next(iter(kinds)), text)
        found[kind] = Path(file)
        kinds[kind](found[kind])
    return found


def list_findings(report: Report) -> None:
    """Print a report's problems and notes to standard error."""
    for kind, messages in (("problem", report.problems), ("note", report.notes)):
        for message in messages:
            print(f"{kind}: {message}", file=sys.stderr)


def job_view(
    source: tuple[str, Path | None, Adapters],
    hosts: Sequence[str] | None,
    ppn: int,
    placement: str,
    report: Report,
    *,
    virtual: bool = False,
) -> TopologyInterface:
    """Read a topology, place a job's ranks on its hosts, and return the job's topology.

    :param source: topology source, its forwarding tables if they are separate, and the options about adapters.
    :param hosts: names of the job's hosts; None for all.
    :param ppn: number of ranks on each host.
    :param placement: order of the ranks over the hosts: ``block``, ``cyclic`` or ``random:SEED``.
    :param report: object that collects problems and shows progress.
    :param virtual: whether the job only pretends to run on these hosts.
    :raises HostError: if a host is unknown, or no links join some of the hosts to the others.
    """
    from ..mapping.placement import place  # imported here, because few commands place ranks

    topology, lfts, adapters = source
    routes = adapters.read(topology, lfts, report)
    names = list(hosts or routes.fabric.hosts)
    require_joined(routes.fabric, names)
    return TopologyInterface.place(place(ppn * len(names), names, placement), routes, source=topology, virtual=virtual)
