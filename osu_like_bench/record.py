"""The record of a benchmark's run, as JSON: every measured time, and every fact needed to judge the times."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from topompi.errors import BenchmarkError
from topompi.inputs import parse_json

from .options import Options

__all__ = ["FORMAT", "VERSION", "Circumstances", "Record", "SizeResult"]

FORMAT, VERSION = "osu_like_bench record", 1


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a run; sequences have one entry per rank unless stated otherwise.

    :param mpi: name and version of the MPI library.
    :param versions: versions of MPI, mpi4py, numpy, python, topompi and the operating system, by name.
    :param ranks: number of ranks.
    :param nodes: machine on which each rank really ran.
    :param hosts: host of each rank in the topology.
    :param virtual: True if ``hosts`` are a virtual placement, not the machines.
    :param topology: source of the topology; "" if there is no topology.
    :param description: description of the topology in a line.
    :param affinity: CPUs on which each rank may run, as ranges (``0-3,8``).
    :param cpu: model of the processor of rank 0's machine.
    :param cpus: number of CPUs of rank 0's machine.
    :param load: load average of rank 0's machine over 1, 5 and 15 minutes at the start; empty if unknown.
    :param oversubscribed: True if a machine had more ranks than CPUs for them.
    :param date: start of the run, ISO 8601 in UTC; empty if it is a simulation, whose result does not depend on it.
    :param arena: origin of the times: ``mpirun`` (real), ``emulate`` (on an emulated network) or ``simulate``.
    :param about: other facts that runs of this origin have, by name, as JSON values.
    """

    mpi: str
    versions: dict[str, str]
    ranks: int
    nodes: tuple[str, ...]
    hosts: tuple[str, ...]
    virtual: bool
    topology: str
    description: str
    affinity: tuple[str, ...]
    cpu: str
    cpus: int
    load: tuple[float, ...]
    oversubscribed: bool
    date: str
    arena: str = "mpirun"
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SizeResult:
    """The result of one message size on one side (one of the compared implementations); times are in seconds.

    :param size: message size in bytes; 0 if the benchmark has no size.
    :param side: name of the side.
    :param average: mean time over iterations and ranks.
    :param minimum: smallest of the ranks' mean times.
    :param maximum: largest of the ranks' mean times.
    :param valid: True if the data were right, False if not; None if they were not validated.
    :param samples: time of the slowest rank in each iteration, in order.
    :param more: other values of the benchmark, by the title of their column; times in seconds.
    """

    size: int
    side: str
    average: float
    minimum: float
    maximum: float
    valid: bool | None
    samples: tuple[float, ...]
    more: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """The record of a run.

    :param options: options of the run.
    :param facts: circumstances of the run.
    :param results: results, one per size and side.
    """

    options: Options
    facts: Circumstances
    results: tuple[SizeResult, ...]

    def to_json(self) -> str:
        """Return the record as JSON text, from which all floats can be read back exactly."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Return the record that ``to_json`` wrote; raise BenchmarkError for any other text."""
        data = parse_json(text, "record", BenchmarkError)
        head = (data.get("format"), data.get("version")) if isinstance(data, dict) else (None, None)
        if head != (FORMAT, VERSION):
            raise BenchmarkError(
                f"record: expecting format {FORMAT!r} of version {VERSION}, got {head[0]!r:.60} of {head[1]!r:.60}"
            )
        results = data.get("results")
        if not isinstance(results, list):
            raise BenchmarkError(f"record: expecting a list of results, got {results!r:.60}")
        return cls(
            _build(Options, data.get("options"), "options"),
            _build(Circumstances, data.get("facts"), "facts"),
            tuple(_build(SizeResult, entry, f"results[{index}]") for index, entry in enumerate(results)),
        )


def _build(kind: type[Any], data: Any, place: str) -> Any:
    """Make an instance of a dataclass from a JSON object; lists become tuples, and fields with defaults may be missing.

    :param kind: the dataclass, which contains no other dataclass.
    :param data: the object.
    :param place: position of the object in the record, for error messages.
    """
    known = {one.name for one in fields(kind)}
    wanted = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    if not isinstance(data, dict) or not wanted <= set(data) <= known:
        given = sorted(data) if isinstance(data, dict) else data
        raise BenchmarkError(f"record: {place}: expecting the fields {sorted(known)}, got {given!r}")
    hints = get_type_hints(kind)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise BenchmarkError(f"record: {place}: {name}: expecting {_words(hints[name])}, got {value!r:.60}")
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON has an annotated type; a whole number is accepted as a float."""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        of_each = isinstance(value, tuple) and len(inner) == 2 and inner[1] is Ellipsis
        return of_each and all(_fits(tuple(one) if isinstance(one, list) else one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if hint is float:
        return type(value) in (int, float) and abs(value) < 2**1000
    if hint is int:
        return type(value) is int and abs(value) < 2**63
    return hint is Any or isinstance(value, hint)


def _words(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint)
