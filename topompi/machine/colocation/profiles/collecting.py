"""A profile made from the reports of one run: perf stat, mpiP, and facts that the user adds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ColocationError
from .mpip import is_mpip, read_mpip
from .perf import ASK, EVENTS, is_perf, metrics_of, operations_of, read_perf
from .record import Profile, merged
from .slurmfields import is_slurm, slurm_facts

__all__ = ["profile_of"]


def profile_of(
    program: str,
    reports: Iterable[tuple[str, str]],
    *,
    processes: int = 0,
    nodes: int = 0,
    seconds: float = math.nan,
    events: Mapping[str, str] = EVENTS,
) -> tuple[Profile, list[str]]:
    """Return the profile of a run in compact mode, and remarks on it.

    :param program: name of the program.
    :param reports: name and content of each report: outputs of ``perf stat``, whose counts are summed, and of mpiP.
    :param processes: number of ranks; 0 if a report has it.
    :param nodes: number of nodes; 0 if a report has it.
    :param seconds: run time; NaN if a report has it.
    :param events: counted quantity of each event of perf.
    :raises ColocationError: if a report is malformed or of no known form, or if nodes or run time are unknown.
    """
    texts = list(reports)
    counted = [(name, text) for name, text in texts if not is_mpip(text) and not is_slurm(text) and is_perf(text)]
    found = Profile(program, processes, nodes, seconds)
    remarks: list[str] = []
    for name, text in texts:
        if is_mpip(text):
            report = read_mpip(name, text)
            told: dict[str, Any] = {"mpi": report.mpi, "shares": report.shares}
            told |= {
                key: getattr(report, key) for key in ("processes", "nodes", "seconds") if not _is_known(found, key)
            }
            found = merged(found, Profile(program, **told))
            if not report.shares:
                remarks.append(f"{name}: no section of all callsites, so that shares of calls are unknown")
        elif facts := slurm_facts(name, text):
            found = merged(found, Profile(program, **{k: v for k, v in facts.items() if not _is_known(found, k)}))
        elif not is_perf(text):
            raise ColocationError(
                f"{name}: expecting the output of perf stat or LIKWID, a report of mpiP, or Slurm's fields, got other "
                "content"
            )
    if not counted:
        if texts and math.isnan(found.mpi):
            raise ColocationError(f"{texts[0][0]}: expecting counts, which Slurm lacks, got none; count by {ASK}")
        return found, remarks
    counts = read_perf(counted)
    if not (counts.unknown or metrics_of(counts, 1, 1.0, events) or operations_of(counts, 1, 1.0) >= 0):
        got = ", ".join(sorted(counts.events)) or "a time alone"
        raise ColocationError(f"{counted[0][0]}: expecting events of known quantity, got {got:.80}; count by {ASK}")
    time = found.seconds if _is_known(found, "seconds") else counts.seconds
    if not found.nodes or math.isnan(time):
        missing = "the number of nodes" if not found.nodes else "the run time"
        raise ColocationError(f"{program}: expecting {missing}, by which counts are divided, got none")
    remarks += [f"{event}: {why} by perf" for event, why in counts.unknown.items()]
    remarks += [f"{event}: counted a part of the time, and scaled" for event in sorted(counts.shared)]
    metrics: dict[str, Any] = metrics_of(counts, found.nodes, time, events)
    metrics["operations"] = operations_of(counts, found.nodes, time)
    return merged(found, Profile(program, seconds=time, **metrics)), remarks


def _is_known(profile: Profile, name: str) -> bool:
    value = getattr(profile, name)
    return bool(value) and value == value
