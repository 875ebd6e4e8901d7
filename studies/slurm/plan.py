"""The settings of the study, and its file of results, to which cells are added one after another."""

from __future__ import annotations

import json
import os
import platform
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from osu_like_bench.cpu import cpu_model
from topompi.errors import BenchmarkError
from topompi.inputs import parse_json, read_text
from topompi.inputs.writing import write_text

__all__ = ["Plan", "Results", "machine"]


@dataclass(frozen=True)
class Plan:
    """The settings of the study.

    :param spec: specification of the network of the throughput: leaf switches x hosts.
    :param rate: rate of the hosts' links.
    :param uplinks: rate of the links above the leaf switches.
    :param jobs: number of jobs of the list.
    :param seconds: seconds of each communicating job by the rates.
    :param gap: mean seconds between two submissions.
    :param seed: seed of the draw of the jobs, and of random orders.
    :param repetitions: number of runs of each policy, and of each comparison of placements.
    :param policies: policies of the throughput.
    :param starts: number of jobs whose start is timed.
    """

    spec: str = "4x4"
    rate: str = "20M"
    uplinks: str = "40M"
    jobs: int = 30
    seconds: float = 5.5
    gap: float = 1.0
    seed: int = 8
    repetitions: int = 3
    policies: tuple[str, ...] = ("slurm", "isolated", "disjoint", "select")
    starts: int = 20

    @property
    def per_leaf(self) -> int:
        """Number of hosts per leaf switch."""
        return int(self.spec.rpartition("x")[2])

    @property
    def nodes(self) -> int:
        """Number of hosts."""
        leaves, _, hosts = self.spec.partition("x")
        return int(leaves) * int(hosts)


def machine() -> dict[str, Any]:
    """Return the conditions of a measurement: processors, system and versions."""
    return {
        "processor": cpu_model(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "day": time.strftime("%Y-%m-%d"),
    }


class Results:
    """The file of results; a cell that it has is not measured again.

    :param path: the file, in JSON.
    :param plan: settings, which must be equal to those in the file, but for the numbers of repetitions and policies.
    :raises BenchmarkError: if the file has other settings, or is malformed.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.failed = path, []
        wanted = {key: value for key, value in asdict(plan).items() if key not in ("repetitions", "policies")}
        self.data: dict[str, Any] = {"plan": wanted, "machine": machine(), "cells": {}}
        if path.exists():
            self.data = parse_json(read_text(path, BenchmarkError, "results"), str(path), BenchmarkError)
            if self.data.get("plan") != wanted:
                raise BenchmarkError(f"{path}: expecting results of {wanted}, got {self.data.get('plan')}")

    failed: list[str]

    @property
    def cells(self) -> dict[str, Any]:
        """The results of the cells, by their names."""
        return dict(self.data["cells"])

    def cell(self, name: str, measured: Callable[[], Any]) -> None:
        """Measure a cell unless it is there, and write the file; a cell that fails is listed, and leaves no result.

        :param name: name of the cell.
        :param measured: function that returns its result, ready for JSON.
        """
        if name in self.data["cells"]:
            print(f"{name}: there already", flush=True)
            return
        print(f"{time.strftime('%H:%M:%S')} {name} ...", flush=True)
        begin = time.monotonic()
        try:
            found = measured()
        except Exception as error:
            self.failed.append(name)
            wrong = "" if isinstance(error, BenchmarkError) else traceback.format_exc()
            print(f"{name}: failed: {error}\n{wrong}", flush=True)
            return
        took = time.monotonic() - begin
        self.data["cells"][name] = {"took": round(took, 1), "load": os.getloadavg()[0], "result": found}
        write_text(self.path, json.dumps(self.data, indent=1))
        print(f"{name}: {took:.0f} s", flush=True)
