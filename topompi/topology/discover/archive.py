"""The archive of a discovery: the tools' outputs and a manifest. The archive is itself a topology source."""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...errors import SourceError, TopompiError
from ...inputs import open_begun
from ...inputs.writing import open_output
from ..discovery import Report

__all__ = ["MANIFEST", "Gathered", "store"]

MANIFEST = "manifest.json"
MOST_PROBLEMS = 20  # problems; limits those that the manifest lists per check
FORMAT = "topompi discovery"


@dataclass(frozen=True)
class Gathered:
    """The output files of one discovery (a run of the tools that list a fabric), and facts for its manifest.

    :param source: file of the topology, readable as a topology source.
    :param tables: file of the forwarding tables; None if there are none.
    :param tools: tool name -> its version, run time in seconds and output size in bytes.
    :param checks: description of each check -> the problems that it found.
    """

    source: Path
    tables: Path | None
    tools: Mapping[str, Mapping[str, object]]
    checks: Mapping[str, Sequence[str]] = field(default_factory=dict)


def store(gathered: Gathered, archive: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Read the discovered files as a topology source, and pack them with a manifest of the results into an archive.

    If the files contain damaged parts, they are packed all the same, and the manifest lists the problems.

    :param gathered: the topology file and the tables file, both in one folder, and facts for the manifest.
    :param archive: path of the archive to write (tar, packed with xz); it is created only when it is complete.
    :param say: callback for progress messages.
    :returns: the manifest.
    :raises SourceError: if no fabric or no table can be read.
    """
    say("reading what they said")
    counts, problems = _counts(gathered)
    checks = {**gathered.checks, "it reads as a topology, and every route arrives": problems}
    manifest = {
        "format": FORMAT,
        "version": 1,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": platform.node(),
        "topompi": _own_version(),
        "tools": dict(gathered.tools),
        "counts": counts,
        "checks": {
            name: {"passed": not wrong, "problems": list(wrong[:MOST_PROBLEMS]), "count": len(wrong)}
            for name, wrong in checks.items()
        },
    }
    say(f"packing {archive}")
    _pack(archive, [gathered.source, *filter(None, [gathered.tables])], json.dumps(manifest, indent=1))
    return manifest


def _own_version() -> str:
    try:
        return version("topompi")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _counts(gathered: Gathered) -> tuple[dict[str, object], list[str]]:
    """The sizes of the discovered fabric for the manifest, and the problems met on reading it."""
    from ..sources import load  # imported here, because it imports the readers of all formats

    report = Report(partial=True)
    place = f"{gathered.source.parent}{os.sep}"  # a temporary folder, whose path is removed from messages
    try:
        discovery = load(gathered.source, gathered.tables, report)
    except TopompiError as error:
        raise SourceError(str(error).replace(place, "")) from error
    fabric, routes = discovery.fabric, discovery.routes
    assert routes is not None  # load() computes missing routes
    counts = {
        "hosts": fabric.num_hosts,
        "adapters": fabric.num_adapters,
        "switches": fabric.num_switches,
        "links": fabric.num_links,
        "paths to a host": routes.num_paths,
        "routes": routes.engine.replace(place, ""),
    }
    return counts, [problem.replace(place, "") for problem in report.problems]


def _pack(archive: Path, files: Sequence[Path], manifest: str) -> None:
    """Write the files and the manifest as one archive, which replaces an older file only when it is complete."""
    # Preset 1 packs the tables of Janus faster and smaller (0.55 MB in 1 s) than the default (0.67 MB in 15 s).
    with open_output(archive, "wb") as file, tarfile.open(fileobj=file, mode="w:xz", preset=1) as packed:
        for path in files:
            _add(packed, path.name, open_begun(path, SourceError, "a report").data())
        _add(packed, MANIFEST, manifest.encode())


def _add(packed: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), int(time.time())
    packed.addfile(member, io.BytesIO(content))
