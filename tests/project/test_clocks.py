"""Searches count their work: no room that thinks reads a clock, so that results do not depend on the load."""

import ast

from tests.support import ROOT

THINKING = [
    *(ROOT / room for room in ("mapping", "schedules")),
    *(ROOT / "topompi" / room for room in ("network", "netsim", "views", "mpi/prediction")),
    *(ROOT / "topompi/mpi/communicator/remap", ROOT / "topompi/cli/map", ROOT / "topompi/cli/profile"),
    *(
        ROOT / "topompi/mpi/profile" / f"{name}.py"
        for name in ("summary", "advice", "neighbouradvice", "seconds", "analysis")
    ),
    *(ROOT / "topompi/machine/colocation" / room for room in ("pairing", "prediction", "rules", "scheduling")),
    *(ROOT / "topompi/machine" / room for room in ("jobs", "interference")),
]
READING = {ROOT / "mapping/readers/text.py"}  # refuses a file that takes too long to read


def sources():
    for room in THINKING:
        assert room.exists(), room
        yield from [room] if room.suffix else sorted(room.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def test_no_room_that_thinks_imports_a_clock():
    clocks = {"time", "datetime", "timeit", "signal"}
    assert [path for path in sources() if path not in READING and clocks & set(imported(path))] == []
