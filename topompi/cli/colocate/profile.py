"""``topompi colocate profile``: profiles of programs, from the reports of other tools."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...inputs.files import open_inputs, read_text
from ...inputs.jsontext import parse_json
from ...inputs.writing import write_text
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.profiles.collecting import profile_of
from ...machine.colocation.profiles.drawing import MOST, spider
from ...machine.colocation.profiles.files import PROFILES, known_fields, read_profiles, write_profiles, write_system
from ...machine.colocation.profiles.perf import ASK, EVENTS
from ...machine.colocation.profiles.record import METRICS, Profile, merged
from ...machine.colocation.profiles.slurmfields import ASK as FACTS
from ...machine.colocation.profiles.system import System
from ...machine.colocation.rules.labels import character_of
from ..inputs import AsJson, Settings, settings_of
from ..quantities import FACTOR, HOSTS, RANKS, SECONDS
from ..terminal import console
from .inputs import merge_all, system_for

__all__ = ["profile"]

_FILES = "Reports of one run (perf stat, LIKWID's CSV, mpiP, sacct -P, .topoprof), or files of profiles."
_SYSTEM = "Bounds and thresholds of the machine; default: those of these profiles."
_EVENTS = 'JSON with the quantity of each event: {"r1a8": "flops"}; flops, lines, references, hits or misses.'


def profile(
    files: Annotated[list[Path], typer.Argument(help=_FILES)],
    *,
    name: Annotated[str, typer.Option("--name", help="Name of the program of the reports.")] = "",
    ranks: Annotated[int, RANKS("-n", "--ranks", help="Number of ranks, if no report has it.", min=0)] = 0,
    nodes: Annotated[int, HOSTS("--nodes", help="Number of nodes, if no report has it.", min=0)] = 0,
    seconds: Annotated[float | None, SECONDS("--seconds", help="Run time, if no report has it.")] = None,
    events: Annotated[Path | None, typer.Option("--events", help=_EVENTS)] = None,
    system: Annotated[Path | None, typer.Option("--system", help=_SYSTEM)] = None,
    settings: Settings = None,
    save: Annotated[Path | None, typer.Option("--save-system", help="Write the bounds and thresholds.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write all profiles to this file.")] = None,
    draw: Annotated[Path | None, typer.Option("--draw", help="FILE.svg: spider plot of all programs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Collect profiles of programs, and show them with the kinds that they imply.

    Reports are those of one run of a program in compact mode: whole nodes, all cores used. Counts are summed over the
    ranks and divided by nodes and run time. The spider plot shows several programs on axes from 0 to the bounds. The
    setting stream is the best STREAM of a node in MB/s, for bounds.
    """
    profiles, remarks = _collected(files, name, ranks, nodes, math.nan if seconds is None else seconds, events)
    stream = settings_of(settings, {"stream": (FACTOR, 0.0)}, ColocationError)["stream"]
    bounds = system_for(profiles, system, stream * 1e6) if system or _bounded(profiles) else None
    if output is not None:
        write_profiles(output, profiles)
    if (save is not None or draw is not None) and bounds is None:
        raise ColocationError("expecting two profiles or more with all metrics for bounds, or --system, got neither")
    if save is not None and bounds is not None:
        write_system(save, replace(bounds, name=save.stem) if system is None else bounds)
    if draw is not None and bounds is not None:
        if len(profiles) > MOST:
            raise ColocationError(f"--draw: expecting at most {MOST} programs, got {len(profiles)}")
        write_text(draw, spider([bounds.tag(one) for one in profiles]))
    if as_json:
        facts = [known_fields(one) | {"kind": _kind(one, bounds) or None} for one in profiles]
        print(json.dumps({"programs": facts, "remarks": remarks}))
        return
    _print(profiles, bounds)
    for remark in remarks:
        console().print(remark, markup=False)


def _collected(
    files: list[Path], name: str, ranks: int, nodes: int, seconds: float, events: Path | None
) -> tuple[list[Profile], list[str]]:
    """Read profiles and reports; the reports are those of one program."""
    profiles: list[Profile] = []
    reports: list[tuple[str, str]] = []
    recorded: list[Path] = []
    for path in files:
        if path.suffix == ".topoprof":
            recorded.append(path)
            continue
        try:
            open_inputs(path, ColocationError, "a report or profiles")[0].refuse_foreign()
            text = read_text(path, ColocationError, "a report or profiles")
        except ColocationError as error:
            if "HDF5" not in str(error):
                raise
            words = f"Slurm's profile has no counts: {FACTS} gives nodes and time; count by {ASK}"
            raise ColocationError(f"{error}; {words}") from None
        if str(PROFILES["format"]) in text[:200]:
            profiles += read_profiles(path)
        else:
            reports.append((str(path), text))
    remarks: list[str] = []
    if reports or recorded:
        if not name:
            raise ColocationError("--name: expecting the name of the program of the reports, got none")
        ran = _recorded(recorded, Profile(name, ranks, nodes, seconds))
        known = {"processes": ran.processes, "nodes": ran.nodes, "seconds": ran.seconds}
        made, remarks = profile_of(name, reports, events=_events(events), **known)  # type: ignore[arg-type]
        profiles.append(made)
    return list(merge_all(profiles).values()), remarks


def _recorded(paths: list[Path], found: Profile) -> Profile:
    """Add ranks, hosts and run time of recordings; they have no times of calls and no counts."""
    for path in paths:
        from ...mpi.profile.file import read_profile  # imported here, because it needs the MPI half

        run = read_profile(path)
        told = Profile(
            found.program,
            found.processes or run.size,
            found.nodes or len(set(run.hosts)),
            found.seconds if found.seconds == found.seconds else run.seconds or math.nan,
        )
        found = merged(found, told)
    return found


def _events(path: Path | None) -> dict[str, str]:
    if path is None:
        return EVENTS
    content = parse_json(read_text(path, ColocationError, "a map of events"), str(path), ColocationError)
    known = sorted(set(EVENTS.values()))
    if not isinstance(content, dict) or not all(one in known for one in content.values()):
        raise ColocationError(f"{path}: expecting an object of events with {', '.join(known)}, got {content!r:.60}")
    return {event.lower().replace(":", "."): quantity for event, quantity in content.items()}


def _bounded(profiles: list[Profile]) -> bool:
    """Whether several profiles give bounds: each metric is known of one. A single program would be its own bound."""
    return len(profiles) > 1 and all(
        any(getattr(one, name) > 0 for one in profiles) for name in METRICS if name != "mpi"
    )


def _kind(one: Profile, bounds: System | None) -> str:
    """Return the program's kind in words; empty if its metrics do not decide."""
    try:
        return character_of(one, bounds).kind.words if bounds is not None else ""
    except ColocationError:
        if one.kind:
            raise
        return ""


def _print(profiles: list[Profile], bounds: System | None) -> None:
    table = Table(box=None, header_style="bold")
    units = {"GFLOPS": 1e-9, "GB/s": 1e-9, "MPI": 1.0, "M hits/s": 1e-6, "M misses/s": 1e-6}
    for head in ("program", "ranks", "nodes", "seconds", *units, "kind"):
        table.add_column(head, justify="left" if head in ("program", "kind") else "right")
    for one in profiles:
        counts = [str(count or "-") for count in (one.processes, one.nodes)]
        metrics = [_cell(getattr(one, name) * unit) for name, unit in zip(METRICS, units.values(), strict=True)]
        table.add_row(one.program, *counts, _cell(one.seconds), *metrics, _kind(one, bounds) or "-")
    console().print(table)
    for one in profiles:
        if one.shares:
            largest = sorted(one.shares.items(), key=lambda item: -item[1])[:4]
            words = ", ".join(f"{call} {share:.1%}" for call, share in largest)
            console().print(f"{one.program}: time in MPI: {words}", markup=False)


def _cell(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"
