"""One archive of what was found out, with a manifest: itself a topology source."""

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
from ...inputs.writing import open_output
from ..discovery import Report

__all__ = ["MANIFEST", "Gathered", "store"]

MANIFEST = "manifest.json"
MOST_PROBLEMS = 20  # of a check that the manifest lists
FORMAT = "topompi discovery"


@dataclass(frozen=True)
class Gathered:
    """What was found out.

    :param source: a topology source.
    :param tables: the forwarding tables beside it; None where there are none.
    :param tools: by name: version, seconds, bytes of what it wrote.
    :param checks: what was checked, with what was found wrong.
    """

    source: Path
    tables: Path | None
    tools: Mapping[str, Mapping[str, Any]]
    checks: Mapping[str, Sequence[str]] = field(default_factory=dict)


def store(gathered: Gathered, archive: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Read what was found out, as any command would, and pack it with a manifest of what that showed.

    What does not read well is kept all the same, with the problems in the manifest.

    :param gathered: with its files in one folder.
    :param archive: the file to write (tar, packed with xz), in one step at the end.
    :param say: told what is being done.
    :returns: the manifest.
    :raises SourceError: where no fabric or no table can be read.
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
    except PackageNotFoundError:  # a checkout that nobody installed
        return "unknown"


def _counts(gathered: Gathered) -> tuple[dict[str, Any], list[str]]:
    """How much there is, and what is wrong with it."""
    from ..sources import load  # all formats

    report = Report(partial=True)
    place = f"{gathered.source.parent}{os.sep}"  # which will be gone
    try:
        discovery = load(gathered.source, gathered.tables, report)
    except TopompiError as error:
        raise SourceError(str(error).replace(place, "")) from error
    fabric, routes = discovery.fabric, discovery.routes
    assert routes is not None  # load() fills them in
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
    """Write all as one archive: nobody meets half of one."""
    # Of Janus' tables little effort makes 0.55 MB in a second, the usual effort 0.67 MB in 15.
    with open_output(archive, "wb") as file, tarfile.open(fileobj=file, mode="w:xz", preset=1) as packed:
        for path in files:
            _add(packed, path.name, path.read_bytes())
        _add(packed, MANIFEST, manifest.encode())


def _add(packed: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), int(time.time())
    packed.addfile(member, io.BytesIO(content))
