"""The outcome of a job as a mapping, and where two of them differ."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

__all__ = ["differences", "lines_of", "reason", "recorded", "schedules_of"]

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}")  # of an object without a name: another one on each rank, in each run
POINTER = re.compile(rf"{ADDRESS.pattern}|(?<![\w.])\d{{14,15}}(?![\w.])")  # in a test's name as a number, too
DIGITS, NOTHING = 4, 1e-9  # sums in another order differ behind these
NATIVE = {"native", "given order", "-"}  # not by a schedule


def recorded(folder: Path, ranks: int) -> dict[str, list[str]]:
    """What became of each test on each rank, by the files of ``recorded.py``; ``absent`` if a rank did not reach it."""
    found: dict[str, list[str]] = defaultdict(lambda: ["absent"] * ranks)
    for rank in range(ranks):
        path = folder / str(rank)
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        names = _names([test for test, *_ in rows])
        for test, outcome, _ in rows:
            found[names[test]][rank] = outcome
    return dict(found)


def _names(tests: list[str]) -> dict[str, str]:
    """Names of tests without addresses; those that only an address tells apart are numbered in their order."""
    times: Counter[str] = Counter()
    names = {}
    for test in dict.fromkeys(tests):
        name = POINTER.sub("0x", test)
        times[name] += 1
        names[test] = name if times[name] == 1 else f"{name} {times[name]}"
    return names


def lines_of(status: int, printed: str, pattern: str = "") -> dict[str, list[str]]:
    """A program's status, and how often it printed each line, in any order, with numbers to some digits, no addresses.

    :param status: of its job.
    :param printed: by all its ranks.
    :param pattern: found in the lines that count.
    """
    counting = [line for line in printed.splitlines() if line.strip() and re.search(pattern, line)]
    lines = Counter(" ".join(NUMBER.sub(_rounded, ADDRESS.sub("0x", line)).split()) for line in counting)
    return {"status": [str(status)], **{line: [f"{times} x"] for line, times in sorted(lines.items())}}


def _rounded(found: re.Match[str]) -> str:
    value = float(found[0])
    return f"{value:.{DIGITS}g}" if abs(value) > NOTHING else "0"


def schedules_of(printed: str) -> dict[str, list[str]]:
    """Which schedules ran each method, from the table that ``--verbose`` prints to standard error."""
    found: dict[str, set[str]] = defaultdict(set)
    rows = printed.partition("rank 0's collective calls")[2].splitlines()[2:]
    for cells in (re.split(r"\s{2,}", row) for row in rows):
        if len(cells) > 5 and cells[4].split(":")[0] not in NATIVE:
            found[cells[0]].add(cells[4])
    return {method: sorted(names) for method, names in found.items()}


def differences(native: dict[str, list[str]], ours: dict[str, list[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """Tests whose outcome is another one than natively: both outcomes, rank by rank."""
    return {
        test: (native.get(test, ["absent"]), ours.get(test, ["absent"]))
        for test in sorted(native.keys() | ours.keys())
        if native.get(test) != ours.get(test)
    }


def reason(named: dict[str, str], package: str, test: str) -> str | None:
    """Why a test's outcome is expected to differ; None where it is not."""
    return next((why for pattern, why in named.items() if re.fullmatch(pattern, f"{package}: {test}")), None)
