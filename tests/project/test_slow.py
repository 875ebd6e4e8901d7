"""The time and memory of readers, which are proportional to the input, whatever it contains."""

import gzip
import json
import time

import pytest

from tests.slowpatterns import STARTS, UNITS, patterns, slowest
from topompi.inputs.slurm.running import read_running
from topompi.machine.jobs import AllocationError
from topompi.mapping.readers import read_graph
from topompi.mapping.readers.text import GraphFile
from topompi.mpi.profile import ProfileError, read_profile
from topompi.topology import load

LENGTH, SECONDS = 3_000, 0.022  # of the processor: what is quadratic takes more, what is linear less than a millisecond


@pytest.mark.long
def test_patterns_of_readers_take_linear_time():
    assert len(STARTS) * len(UNITS) > 500
    found = [
        (name, slowest(pattern, method, LENGTH, SECONDS)) for name, pattern, methods in patterns() for method in methods
    ]
    assert len(found) > 40
    assert not [(name, taken) for name, taken in found if taken[0] > SECONDS]


def test_only_formats_whose_lines_are_vertices_see_the_empty_lines_of_a_graph():
    file = GraphFile("f", b"3 2\n" + b"\n" * 5 + b" \n2\n")
    assert list(file.lines()) == [(1, "3 2"), (8, "2")]
    assert [number for number, _ in file.lines(empty=True)] == list(range(1, 9))


@pytest.mark.parametrize("line", ["," * 1_000_000, "a,=" * 300_000, "---" + " " * 1_000_000, "a , b" + " " * 1_000_000])
def test_a_long_line_of_pairs_is_refused_at_once(tmp_path, line):
    (tmp_path / "f").write_text(f"0 , 1 = 5\n{line}\n")
    begun = time.monotonic()
    with pytest.raises(ValueError, match="expecting"):
        read_graph(tmp_path / "f")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "line",
    [
        '[1]\t"S-1"[1]' + " " * 1_000_000,
        "CA 1 1 0x0000000000000001 4x SDR - CA 2 1 0x0000000000000002 ( '" + "' - '" * 200_000,
    ],
)
def test_a_long_line_of_a_report_is_refused_at_once(tmp_path, line):
    head = 'vendid=0x0\nswitchguid=0x1(1)\nSwitch\t8 "S-1"\t# "a" base port 0 lid 1 lmc 0\n' if line[0] == "[" else ""
    (tmp_path / "f").write_text(f"{head}{line}\n")
    begun = time.monotonic()
    with pytest.raises(ValueError, match="expecting"):
        load(tmp_path / "f")
    assert time.monotonic() - begun < 5


def test_a_profile_of_one_line_that_stands_for_a_gigabyte_is_refused(tmp_path):
    head = json.dumps({"topompi": "profile", "version": 1, "ranks": 1}).encode() + b"\n"
    path = tmp_path / "f.topoprof"
    path.write_bytes(gzip.compress(head) + gzip.compress(b" " * (1 << 25)) * 4)
    assert path.stat().st_size < 200_000
    with pytest.raises(ProfileError, match="times its size when unpacked"):
        read_profile(path)


def test_the_limits_hold_for_running_jobs_and_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPOMPI_LIMITS", "bytes=1K")
    (tmp_path / "f").write_text("a h1\n" * 1000)
    with pytest.raises(AllocationError, match="at most 1,024 bytes"):
        read_running(tmp_path / "f", AllocationError)
