"""Profiles, their files, and the bounds of a machine: values computed by hand, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.profiles.files import PROFILES, read_profiles
from topompi.machine.colocation.profiles.record import Profile
from topompi.machine.colocation.profiles.system import System

EP = Profile("ep", 4, 1, 9.0, 3e9, 1e6, 0.01, 1e6, 1e4)
MG = Profile("mg", 4, 1, 9.0, 1e9, 6e9, 0.2, 2e6, 5e5)


def test_observed_bounds_are_the_most_of_each_metric_with_room_for_flops_and_stream_for_memory():
    found = System.observed("m", [EP, MG], 7e9)
    assert (found.flops, found.memory, found.hits, found.misses, found.mpi) == (1.05 * 3e9, 7e9, 2e6, 5e5, 1.0)
    assert System.observed("m", [EP, MG], 0).memory == 6e9
    tag = found.tag(MG)
    assert (tag.flops, tag.memory, tag.mpi, tag.hits, tag.misses) == (1 / 3.15, 6 / 7, 0.2, 1.0, 1.0)
    few = [Profile("x", flops=1.0, memory=1.0, hits=1.0)]
    assert "misses: expecting a profile with a positive value" in refusal(
        System.observed, "m", few, 0, error=ColocationError
    )


def test_impossible_values_are_refused_by_name():
    for wrong, words in (
        ({"mpi": 1.5}, "mpi: expecting a share in [0, 1], got 1.5"),
        ({"operations": -1.0}, "operations: expecting a number from 0, got -1"),
        ({"shares": {"Wait": 0.6, "Send": 0.5}}, "shares: expecting shares that add up to at most 1, got 1.100"),
        ({"shares": {"Wait": -0.1}}, "shares: Wait: expecting a share in [0, 1], got -0.1"),
        ({"seconds": 0.0}, "seconds: expecting a positive time, got 0"),
    ):
        assert words in refusal(lambda wrong=wrong: Profile("p", **wrong), error=ColocationError)


def test_a_file_with_a_program_twice_or_an_unknown_field_is_refused(tmp_path: Path):
    for programs, words in (
        ([{"program": "a"}, {"program": "a"}], "programs: expecting each program once, got 'a' twice"),
        ([{"program": "a", "speed": 1}], "programs[0]: expecting fields of a profile, got 'speed'"),
        ([{"program": "a", "nodes": 1.5}], "programs[0]: nodes: expecting a whole number from 0, got 1.5"),
    ):
        (tmp_path / "p.json").write_text(json.dumps({**PROFILES, "programs": programs}))
        assert words in refusal(read_profiles, tmp_path / "p.json", error=ColocationError)
