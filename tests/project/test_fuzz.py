"""A short campaign of damaged inputs against every reader; ``make fuzz`` is the long one."""

import ast
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz.campaign import SECONDS as SECONDS_OF_A_CASE
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.crafted import promises
from tests.fuzz.mutations import mutate
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import FABRIC_REPORT, small
from tests.sources import trees
from tests.support import ROOT
from topompi.inputs import files

HELPERS = {"open_begun", "open_inputs", "read_input", "read_text"}
OWN, ROOTS = "a file of the package", "a file that root's emulation wrote"
# Functions that read, and are reached by no reader of the table, with the reason.
UNREACHED = {
    ("osu_like_bench/emulate/cli.py", "_text"): ROOTS,
    ("osu_like_bench/emulate/session.py", "run"): ROOTS,
    ("osu_like_bench/emulate/slurm.py", "_wait_for"): ROOTS,
    ("topompi/mpi/communicator/starting.py", "settings_of"): "imports MPI; its text is read by the reader of rules",
    ("topompi/mpi/profile/page.py", "page"): OWN,
    ("topompi/machine/slurm/page/whole.py", "whole_page"): OWN,
    ("topompi/topology/discover/archive.py", "_pack"): "copies reports that tools wrote into this process's folder",
    ("topompi/topology/discover/tools.py", "_facts"): "compares reports that tools wrote into this process's folder",
    ("topompi/mpi/tuning/mpich_tables.py", "read"): "the MPI library that programs run",
    ("topompi/views/picture/exchanged.py", "_of_schedule"): "its text is read by the reader of schedules",
    ("topompi/views/picture/writers.py", "html"): OWN,
}
SECONDS = 15.0  # of mutations, or as many as below


@pytest.mark.long
def test_damaged_and_hostile_inputs_raise_errors_of_ours_within_memory_and_time() -> None:
    random = Random(20)
    seeds = small()
    assert {reader for reader, _ in seeds} == set(READERS)
    campaign = Campaign(seconds=10 * SECONDS_OF_A_CASE)  # the processor may be shared, so that its seconds are longer
    campaign.run([Case("seed", *one) for one in seeds])
    assert {reader for reader, outcome in campaign.counts if outcome == "read"} == set(READERS)
    assert not any(outcome == "refused" for _, outcome in campaign.counts)
    cases = (Case(f"mutation {number}", reader, mutate(data, random)) for number in range(12) for reader, data in seeds)
    hostile = [Case(*one) for one in promises()]
    campaign.run([*hostile, *cases], time.monotonic() + SECONDS)
    assert campaign.failures == []


def _readers(node: ast.AST, function: str = "") -> Iterator[str]:
    """Name of the innermost function around each call of a helper that opens a file."""
    name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
    if name in HELPERS:
        yield function
    for one in ast.iter_child_nodes(node):
        yield from _readers(one, node.name if isinstance(node, ast.FunctionDef) else function)


def test_every_function_that_reads_a_file_is_reached_by_a_reader_that_is_fuzzed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: set[tuple[str, str]] = set()
    unpacked = files._unpacked

    def noted(*args: Any, **how: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == files.__file__ or frame.f_code.co_name.startswith("<"):
            assert frame.f_back is not None
            frame = frame.f_back
        path = Path(frame.f_code.co_filename).resolve()
        reached.add((path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else "", frame.f_code.co_name))
        return unpacked(*args, **how)

    monkeypatch.setattr(files, "_unpacked", noted)
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(tmp_path))  # a reader changes it
    (tmp_path / "fabric").write_bytes(FABRIC_REPORT)
    for number, (reader, data) in enumerate(small()):
        path = tmp_path / str(number) / "input"
        path.parent.mkdir()
        path.write_bytes(data)
        READERS[reader](path)
    sources = trees().items() - {("topompi/inputs/files.py", trees()["topompi/inputs/files.py"])}
    readers = {(path, name) for path, tree in sources for name in _readers(tree)}
    assert sorted(readers - reached) == sorted(UNREACHED)
