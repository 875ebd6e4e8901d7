"""The record of a tuning run in JSON: all measured times, with the facts about the job needed to judge and use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs import parse_json, read_text
from ...schedules.registry import current_name

__all__ = ["Measured", "RecordError", "TuneRecord"]

FORMAT, VERSION = "topompi tune record", 1


class RecordError(TopompiError, ValueError):
    """A file is not a record of a tuning run, or several records do not belong together."""


@dataclass(frozen=True)
class Measured:
    """The measured times of one algorithm of one call at one size.

    :param method: mpi4py's name of the call.
    :param nbytes: size in bytes, as ``Selector.choose`` counts it.
    :param algorithm: name of the algorithm.
    :param samples: seconds of the slowest rank in each round, in order; in a round every algorithm is called once.
    """

    method: str
    nbytes: int
    algorithm: str
    samples: tuple[float, ...]


@dataclass(frozen=True)
class TuneRecord:
    """The record of one run of ``topompi tune``.

    :param name: path of the file from which the record was read; "" if it was not read.
    :param library: MPI vendor and version.
    :param ranks: number of ranks.
    :param hosts: number of hosts.
    :param ranks_per_host: least and greatest number of ranks on a host.
    :param nodes: name of the machine on which each rank ran, also if the placement is virtual, shape (ranks,).
    :param description: the placement of the ranks in one line.
    :param topology: fingerprint of the network.
    :param forced: algorithms that the environment forces on Open MPI, by method in lower case.
    :param date: time of the run in UTC, ISO 8601.
    :param results: the times of each method, size and algorithm.
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
        """The times of an algorithm in seconds, shape (rounds,), by size in bytes."""
        chosen = (one for one in self.results if (one.method, one.algorithm) == (method, algorithm))
        return {one.nbytes: np.array(one.samples) for one in chosen}

    def to_json(self) -> str:
        """The text of the record."""
        data = asdict(self)
        del data["name"]
        return json.dumps({"format": FORMAT, "version": VERSION, **data}) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> TuneRecord:
        """The record in a file.

        :raises RecordError: if the file cannot be read or is malformed.
        """
        return cls.parse(read_text(path, RecordError, "a tune record"), str(path))

    @classmethod
    def parse(cls, text: str, name: str = "record") -> TuneRecord:
        """The record in a text that ``to_json`` wrote.

        :raises RecordError: for any other text.
        """
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
