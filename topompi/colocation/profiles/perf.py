"""Counts in the output of ``perf stat``, as text or CSV (``-x``), summed over ranks, and the metrics that follow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import ColocationError

__all__ = ["EVENTS", "LINE", "OPERATIONS", "Counts", "is_perf", "metrics_of", "operations_of", "read_perf"]

LINE = 64  # bytes of a cache line
FLOPS, LINES, REFERENCES, MISSES = "flops", "lines", "references", "misses"
# Event, in lower case with dots, -> counted quantity. The first of each are the source's, on Intel Ivy Bridge; packed
# instructions count once, whatever their width, as there.
EVENTS: dict[str, str] = {
    "fp_comp_ops_exe.sse_fp_packed_double": FLOPS,
    "fp_comp_ops_exe.sse_packed_double": FLOPS,
    "fp_comp_ops_exe.sse_scalar_double": FLOPS,
    "fp_arith_inst_retired.scalar_double": FLOPS,
    "fp_arith_inst_retired.128b_packed_double": FLOPS,
    "fp_arith_inst_retired.256b_packed_double": FLOPS,
    "fp_arith_inst_retired.512b_packed_double": FLOPS,
    "fp_ret_sse_avx_ops.all": FLOPS,
    "offcore_response_0.llc_miss_local": LINES,
    "offcore_response_0.llc_miss_remote": LINES,
    "llc_references": REFERENCES,
    "longest_lat_cache.reference": REFERENCES,
    "cache-references": REFERENCES,
    "llc_misses": MISSES,
    "longest_lat_cache.miss": MISSES,
    "cache-misses": MISSES,
}
# Event -> floating-point operations of one count: the numbers in a register. The events of Intel's later CPUs count
# fused operations twice already; AMD's event counts operations.
OPERATIONS: dict[str, int] = {
    "fp_comp_ops_exe.sse_fp_packed_double": 2,
    "fp_comp_ops_exe.sse_packed_double": 2,
    "fp_comp_ops_exe.sse_packed_single": 4,
    "fp_comp_ops_exe.sse_scalar_double": 1,
    "fp_comp_ops_exe.sse_scalar_single": 1,
    "simd_fp_256.packed_double": 4,
    "simd_fp_256.packed_single": 8,
    "fp_arith_inst_retired.scalar_double": 1,
    "fp_arith_inst_retired.scalar_single": 1,
    "fp_arith_inst_retired.128b_packed_double": 2,
    "fp_arith_inst_retired.128b_packed_single": 4,
    "fp_arith_inst_retired.256b_packed_double": 4,
    "fp_arith_inst_retired.256b_packed_single": 8,
    "fp_arith_inst_retired.512b_packed_double": 8,
    "fp_arith_inst_retired.512b_packed_single": 16,
    "fp_ret_sse_avx_ops.all": 1,
}
_UNKNOWN = re.compile(r"<not (supported|counted)>")
_TEXT = re.compile(
    r"\s*(<not \w+>|[0-9][0-9.,]*)\s+(?:(?:msec|Joules|MiB|C)\s+)?([A-Za-z][^\s#]*)\s*(?:#.*?)?(\(\s*[0-9.]+%\))?\s*$"
)
_ELAPSED = re.compile(r"\s*([0-9][0-9.,]*)(?:\s+\+-\s+[0-9.]+)?\s+seconds time elapsed")
_CSV = re.compile(r"\s*(<not \w+>|[0-9][0-9.]*)([,;:|\t ])([^,;|\t]*)\2([A-Za-z][^,;|\t]*)(?:\2|$)")


@dataclass
class Counts:
    """Counts of events, summed over ranks.

    :ivar events: count of each event, by its name; NaN if one rank could not count it.
    :ivar seconds: longest run time of a rank; NaN if it is unknown.
    :ivar unknown: reason of each count that is unknown, by event.
    :ivar shared: events that were counted during a part of the time only, because the CPU has too few counters.
    """

    events: dict[str, float] = field(default_factory=dict)
    seconds: float = math.nan
    unknown: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


def is_perf(text: str) -> bool:
    """Whether a text is the output of ``perf stat``.

    :param text: the text.
    """
    return "Performance counter stats" in text[:4096] or any(map(_CSV.match, text[:4096].splitlines()[:20]))


def read_perf(texts: Iterable[tuple[str, str]]) -> Counts:
    """Return the counts in outputs of ``perf stat``; a text may contain those of several ranks.

    :param texts: name, for error messages, and content of each output.
    :raises ColocationError: if a text has no counts.
    """
    counts = Counts()
    for name, text in texts:
        before = dict(counts.events), counts.seconds
        for number, line in enumerate(text.splitlines(), 1):
            if match := _ELAPSED.match(line):
                counts.seconds = _longer(counts.seconds, _number(match[1], f"{name}:{number}"))
            elif match := _TEXT.match(line):
                part = match[3] is not None and float(match[3].strip("()% ")) < 100
                _add(counts, match[2], match[1], part, f"{name}:{number}")
            elif match := _CSV.match(line):
                _add(counts, match[4], match[1], _partly(line, match), f"{name}:{number}")
        if (counts.events, counts.seconds) == before:
            raise ColocationError(f"{name}: expecting the output of perf stat, got no counts")
    return counts


def metrics_of(counts: Counts, nodes: int, seconds: float, events: Mapping[str, str] = EVENTS) -> dict[str, float]:
    """Return the metrics of a profile per node and second: ``flops``, ``memory``, ``hits``, ``misses``.

    A metric is absent if no event of it was counted, and if one of its events could not be counted.

    :param counts: counts, summed over ranks.
    :param nodes: number of nodes of the run.
    :param seconds: run time.
    :param events: counted quantity of each event, by lower-case name with dots.
    :raises ColocationError: if there are more misses than references.
    """
    sums: dict[str, float] = {}
    for name, count in counts.events.items():
        quantity = events.get(_plain(name))
        if quantity is not None:
            sums[quantity] = sums.get(quantity, 0.0) + count
    known = {name: value / (nodes * seconds) for name, value in sums.items() if not math.isnan(value)}
    found = {name: known[name] for name in (FLOPS, MISSES) if name in known}
    if LINES in known:
        found["memory"] = known[LINES] * LINE
    if REFERENCES in known and MISSES in known:
        if known[MISSES] > known[REFERENCES]:
            raise ColocationError("perf: expecting at least as many LLC references as misses, got fewer")
        found["hits"] = known[REFERENCES] - known[MISSES]
    return found


def operations_of(counts: Counts, nodes: int, seconds: float) -> float:
    """Return floating-point operations per node and second: packed instructions count by their width, AVX's, too.

    ``flops`` of `metrics_of` counts instructions, as its source does. NaN if no event of ``OPERATIONS`` was counted, or
    one of them could not be counted. An event that was not asked for is missing in the sum.

    :param counts: counts, summed over ranks.
    :param nodes: number of nodes of the run.
    :param seconds: run time.
    """
    found = [
        OPERATIONS[name] * count for event, count in counts.events.items() if (name := _plain(event)) in OPERATIONS
    ]
    return sum(found) / (nodes * seconds) if found else math.nan


def _add(counts: Counts, event: str, value: str, partly: bool, where: str) -> None:
    if _plain(event) in ("task-clock", "cpu-clock", "duration_time"):
        if _plain(event) == "duration_time" and value[0] != "<":
            counts.seconds = _longer(counts.seconds, _number(value, where) / 1e9)
        return
    if reason := _UNKNOWN.match(value):
        counts.unknown[event] = f"not {reason[1]}"
    elif partly:
        counts.shared.add(event)
    count = math.nan if value.startswith("<") else _number(value, where)
    counts.events[event] = counts.events.get(event, 0.0) + count


def _partly(line: str, match: re.Match[str]) -> bool:
    """Whether a line of CSV has a share of time (its second field behind the event) below 100 %."""
    rest = line[match.end() :].split(match[2])
    try:
        return len(rest) > 1 and 0 < float(rest[1]) < 100
    except ValueError:
        return False


def _plain(event: str) -> str:
    """Return an event's name in lower case, with dots, and without modifiers (``:u``)."""
    name = re.sub(r":[ukhGHpPSDIW]+$", "", event.strip().strip("/"))
    return name.removeprefix("cpu/").lower().replace("::", ".").replace(":", ".")


def _longer(one: float, other: float) -> float:
    return other if math.isnan(one) else max(one, other)


def _number(text: str, where: str) -> float:
    """Return a number in which commas separate thousands."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise ColocationError(f"{where}: expecting a count, got {text!r:.60}") from None
