"""The record of a tuning run: all samples, and what is needed to judge and use them; JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TopompiError
from ..inputs import parse_json, read_text
from ..schedules.registry import current_name

__all__ = ["Measured", "RecordError", "TuneRecord"]

FORMAT, VERSION = "topompi tune record", 1


class RecordError(TopompiError, ValueError):
    """A file is not a record of a tuning run, or records do not fit together."""


@dataclass(frozen=True)
class Measured:
    """The times of one algorithm at one size.

    :param method: mpi4py's name of the call.
    :param nbytes: size in bytes, as ``Selector.choose`` counts.
    :param samples: seconds of the slowest rank, round by round; those of one method and size are interleaved.
    """

    method: str
    nbytes: int
    algorithm: str
    samples: tuple[float, ...]


@dataclass(frozen=True)
class TuneRecord:
    """One run of ``topompi tune``.

    :param name: the file it was read from.
    :param library: MPI vendor and version.
    :param ranks: number of ranks; ``hosts`` of hosts, ``ranks_per_host`` the fewest and the most on one.
    :param nodes: the machine that each rank really ran on.
    :param description: where the ranks sit, in a line.
    :param topology: fingerprint of the network.
    :param forced: methods in lower case whose algorithm the environment forces on Open MPI, and to which.
    :param date: ISO 8601, in UTC.
    """

    name: str
    library: str
    ranks: int
    hosts: int
    ranks_per_host: tuple[int, int]
    nodes: tuple[str, ...]
    description: str
    topology: str
    forced: dict[str, str]
    date: str
    results: tuple[Measured, ...]

    def times(self, method: str, algorithm: str) -> Mapping[int, NDArray[np.float64]]:
        """Size in bytes -> times of an algorithm."""
        chosen = (one for one in self.results if (one.method, one.algorithm) == (method, algorithm))
        return {one.nbytes: np.array(one.samples) for one in chosen}

    def to_json(self) -> str:
        """The record's text."""
        data = asdict(self)
        del data["name"]
        return json.dumps({"format": FORMAT, "version": VERSION, **data}) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> TuneRecord:
        """The record in a file; raises RecordError."""
        return cls.parse(read_text(path, RecordError, "a tune record"), str(path))

    @classmethod
    def parse(cls, text: str, name: str = "record") -> TuneRecord:
        """The record that ``to_json`` wrote; raises RecordError on anything else."""
        data = parse_json(text, name, RecordError)
        if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
            raise RecordError(f'{name}: expecting an object with "format": "{FORMAT}" and "version": {VERSION}')
        try:
            return _record(data, name)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RecordError(f"{name}: expecting the fields of a tune record, got {error!r}") from error


def _record(data: Mapping[str, Any], name: str) -> TuneRecord:
    low, high = data["ranks_per_host"]
    results = (
        Measured(
            str(one["method"]),
            int(one["nbytes"]),
            current_name(str(one["algorithm"])),
            tuple(map(float, one["samples"])),
        )
        for one in data["results"]
    )
    return TuneRecord(
        name=name,
        library=str(data["library"]),
        ranks=int(data["ranks"]),
        hosts=int(data["hosts"]),
        ranks_per_host=(int(low), int(high)),
        nodes=tuple(map(str, data["nodes"])),
        description=str(data["description"]),
        topology=str(data["topology"]),
        forced={str(method): str(word) for method, word in data["forced"].items()},
        date=str(data["date"]),
        results=tuple(results),
    )
