"""Counts in outputs of ``perf stat`` (text, CSV, JSON) and LIKWID (CSV), summed over ranks, and their metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....inputs.jsontext import parse_json
from ..errors import ColocationError

__all__ = ["ASK", "EVENTS", "LINE", "OPERATIONS", "EventCounts", "is_perf", "metrics_of", "operations_of", "read_perf"]

LINE = 64  # bytes of a cache line
FLOPS, LINES, REFERENCES, HITS, MISSES = "flops", "lines", "references", "hits", "misses"
# Event, in lower case with dots, -> counted quantity. The first of each are the source's, on Intel Ivy Bridge; packed
# instructions count once, whatever their width, as there. LIKWID writes underscores for dots.
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
    "cas_count_rd": LINES,
    "cas_count_wr": LINES,
    "unc_m_cas_count.rd": LINES,
    "unc_m_cas_count.wr": LINES,
    "llc_references": REFERENCES,
    "longest_lat_cache.reference": REFERENCES,
    "cache-references": REFERENCES,
    "llc-loads": REFERENCES,
    "mem_load_retired.l3_hit": HITS,
    "llc_misses": MISSES,
    "longest_lat_cache.miss": MISSES,
    "cache-misses": MISSES,
    "llc-load-misses": MISSES,
    "mem_load_retired.l3_miss": MISSES,
}
# Events that count the same accesses of the last-level cache, the most complete first: one row of them is taken.
_CACHE = (
    ("llc_references", "llc_misses"),
    ("longest_lat_cache.reference", "longest_lat_cache.miss"),
    ("cache-references", "cache-misses"),
    ("llc-loads", "llc-load-misses"),
    ("mem_load_retired.l3_hit", "mem_load_retired.l3_miss"),
)
# What gives the counts of a profile, for error messages.
ASK = (
    "perf stat -x, -o FILE -e cache-references,cache-misses,fp_arith_inst_retired.scalar_double,"
    "fp_arith_inst_retired.256b_packed_double ./app (perf list names the events of other CPUs, and --events their "
    "quantities), or likwid-perfctr -g MEM_DP -o FILE.csv ./app"
)
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
_UNITS = ("msec", "Joules", "MiB", "C", "ns")
_VALUE = re.compile(r"<not \w+>|[0-9][0-9.,]*")
_CSV = re.compile(r"\s*(<not \w+>|[0-9][0-9.]*)([,;:|\t ])([^,;|\t]*)\2([A-Za-z][^,;|\t]*)(?:\2|$)")
_PLACED = re.compile(r"(?:cpu|armv|apple_)[^/]*/(.*)/[a-z]*", re.IGNORECASE)  # an event of one kind of cores
_TABLE = re.compile(r"TABLE,Group [0-9]+ (?:Raw|Metric)(?: STAT| Stat)?,", re.IGNORECASE)
_ELAPSED = ["seconds", "time", "elapsed"]
_TIMES = {"seconds": 1.0, "duration_time": 1e-9, "task-clock": 0.0, "cpu-clock": 0.0}  # in seconds; 0 for no run time
_UNDERSCORED = {name.replace(".", "_"): name for name in (*EVENTS, *OPERATIONS)}
Value = tuple[str, str, bool, int]  # event, count, whether it was counted a part of the time, line


@dataclass
class EventCounts:
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
    """Whether a text is the output of ``perf stat`` or LIKWID.

    :param text: the text.
    """
    head = text[:4096]
    return (
        "Performance counter stats" in head
        or '"counter-value"' in head
        or _TABLE.search(head) is not None
        or any(map(_CSV.match, head.splitlines()[:20]))
    )


def read_perf(texts: Iterable[tuple[str, str]]) -> EventCounts:
    """Return the counts in outputs of ``perf stat`` or LIKWID; a text may contain those of several ranks.

    :param texts: name, for error messages, and content of each output.
    :raises ColocationError: if a text has no counts.
    """
    counts = EventCounts()
    for name, text in texts:
        before = dict(counts.events), counts.seconds
        lines = text.splitlines()
        for event, value, partly, number in (_likwid if _TABLE.search(text) else _perf)(name, lines):
            _add(counts, event, value, partly, f"{name}:{number}")
        if (counts.events, counts.seconds) == before:
            raise ColocationError(f"{name}: expecting the output of perf stat or LIKWID, got no counts")
    return counts


def _perf(name: str, lines: list[str]) -> Iterator[Value]:
    """The values in lines of ``perf stat``, each of which is text, CSV or a JSON object."""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("{"):
            closed = re.sub(r",\s*}\s*$", "}", line)  # some versions of perf write a comma before the end
            one = parse_json(closed, f"{name}:{number}", ColocationError)
            event, share = one.get("event"), one.get("pcnt-running", 100)
            if isinstance(event, str) and event and isinstance(share, int | float):
                yield event, str(one.get("counter-value")).strip(), 0 < share < 100, number
        elif found := _from_text(line):
            yield *found, number
        elif match := _CSV.match(line):
            yield match[4], match[1], _partly(line, match), number


def _from_text(line: str) -> tuple[str, str, bool] | None:
    """Return event, count, and whether it was counted a part of the time; None if the line has no count."""
    line = line.strip()
    match = _VALUE.match(line)
    if match is None or not line[match.end() :][:1].isspace():
        return None
    rest, bracket, share = line[match.end() :].rpartition("(")
    words = (rest if bracket else share).partition("#")[0].split()
    if words[-3:] == _ELAPSED:
        return "seconds", match[0], False
    if words[:1] and words[0] in _UNITS:
        del words[0]
    if not words or not words[0][0].isalpha() or words[1:2] not in ([], ["("]):
        return None
    return words[0], match[0], bool(bracket) and _is_part(share.removesuffix(")").removesuffix("%"))


def _likwid(name: str, lines: list[str]) -> Iterator[Value]:
    """The counts of all threads in LIKWID's tables, and the longest run time; tables of sums are left out."""
    head = ""
    for number, line in enumerate(lines, 1):
        cells = line.rstrip(",").split(",")
        if cells[0] in ("TABLE", "STRUCT"):
            head = cells[1].lower() if len(cells) > 1 else ""
        elif head.endswith(" raw") and cells[0] != "Event":
            for value in cells[2:]:
                yield cells[0], value, False, number
        elif head.endswith(" metric") and cells[0].startswith("Runtime (RDTSC)"):
            for value in cells[1:]:
                yield "seconds", value, False, number


def metrics_of(counts: EventCounts, nodes: int, seconds: float, events: Mapping[str, str] = EVENTS) -> dict[str, float]:
    """Return the metrics of a profile per node and second: ``flops``, ``memory``, ``hits``, ``misses``.

    A metric is absent if no event of it was counted, and if one of its events could not be counted.

    :param counts: counts, summed over ranks.
    :param nodes: number of nodes of the run.
    :param seconds: run time.
    :param events: counted quantity of each event, by lower-case name with dots.
    :raises ColocationError: if there are more misses than references.
    """
    sums: dict[str, float] = {}
    plain = {_plain(name) for name in counts.events}
    rows = sorted(_CACHE, key=lambda row: -len(plain & {*row}))  # a stable order: whole rows first
    beside = {event for row in rows[1:] for event in row} - {*rows[0]}
    for name, count in counts.events.items():
        quantity = events.get(_plain(name))
        if quantity is not None and (events is not EVENTS or _plain(name) not in beside):
            sums[quantity] = sums.get(quantity, 0.0) + count
    known = {name: value / (nodes * seconds) for name, value in sums.items() if not math.isnan(value)}
    found = {name: known[name] for name in (FLOPS, MISSES) if name in known}
    if LINES in known:
        found["memory"] = known[LINES] * LINE
    if HITS in known:
        found["hits"] = known[HITS]
    elif REFERENCES in known and MISSES in known:
        if known[MISSES] > known[REFERENCES]:
            raise ColocationError("perf: expecting at least as many LLC references as misses, got fewer")
        found["hits"] = known[REFERENCES] - known[MISSES]
    return found


def operations_of(counts: EventCounts, nodes: int, seconds: float) -> float:
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


def _add(counts: EventCounts, event: str, value: str, partly: bool, where: str) -> None:
    unit = _TIMES.get(_plain(event))
    if unit is not None:
        if unit and value[0] != "<":
            counts.seconds = _longer(counts.seconds, _number(value, where) * unit)
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
    return len(rest) > 1 and _is_part(rest[1])


def _is_part(text: str) -> bool:
    """Whether a text is a share above 0 and below 100 %."""
    try:
        return 0 < float(text) < 100
    except ValueError:
        return False


def _plain(event: str) -> str:
    """Return an event's name in lower case, with dots, without modifiers (``:u``) and the kind of cores.

    LIKWID's names become those of perf.
    """
    name = re.sub(r":[ukhGHpPSDIW]+$", "", event.strip())
    placed = _PLACED.fullmatch(name)
    name = (placed[1] if placed else name.strip("/")).lower().replace("::", ".").replace(":", ".")
    return _UNDERSCORED.get(name, name)


def _longer(one: float, other: float) -> float:
    return other if math.isnan(one) else max(one, other)


def _number(text: str, where: str) -> float:
    """Return a number in which commas separate thousands."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise ColocationError(f"{where}: expecting a count, got {text!r:.60}") from None
