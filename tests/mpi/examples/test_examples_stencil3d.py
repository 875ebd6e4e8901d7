"""examples/stencil3d: equal bits on any number of ranks in any order, and agreement with theory."""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from mpi4py import MPI

from tests.examples import check_readme, failure, module, run_examples

stencil3d = module("stencil3d")
GRID = (13, 10, 9)
MORE = {1: [], 4: ["--pulse"], 8: ["--overlap"]}  # number of ranks -> further options of its run
PLACED = {"TOPOMPI_TOPOLOGY": "xgft:2,2,2;1,1,1", "TOPOMPI_HOSTS": "h[0000,0007,0002,0003,0004,0005,0006,0001]"}


def beginning(grid, periodic, pulse, step):
    """The first two states, written down from the equations."""
    x, y, z = np.meshgrid(*map(np.arange, grid), indexing="ij")
    if pulse:
        state = np.exp(-sum(((at - n / 3) / (n / 16)) ** 2 for at, n in zip((x, y, z), grid, strict=True)))
        return state, state
    if periodic:
        k = 2 * np.pi * np.array([1, 2, 1]) / grid
        return tuple(np.sin(k[0] * x + k[1] * y + k[2] * z - np.linalg.norm(k) * time) for time in (0, -step))
    k = np.pi * np.array([1, 2, 1]) / (np.array(grid) + 1)
    state = np.sin(k[0] * (x + 1)) * np.sin(k[1] * (y + 1)) * np.sin(k[2] * (z + 1))
    return state, state * np.cos(np.linalg.norm(k) * step)


def unfolded(state):
    """A closed box as a part of a periodic one: between two zeros in each direction, and mirrored."""
    for axis in range(3):
        zeros = np.zeros_like(state.take([0], axis))
        state = np.concatenate([zeros, state, zeros, -np.flip(state, axis)], axis)
    return state


def expected(grid, periodic, pulse, steps, step):
    """The solution with whole arrays in one process, which knows neither blocks nor halos nor walls."""
    now, before = beginning(grid, periodic, pulse, step)
    if not periodic:
        now, before = unfolded(now), unfolded(before)
    for _ in range(steps):
        slope = sum(
            weight * (np.roll(now, shift, axis) + np.roll(now, -shift, axis)) - 1.25 * now
            for axis in range(3)
            for shift, weight in ((1, 4 / 3), (2, -1 / 12))
        )
        now, before = 2 * now - before + step**2 * slope, now
    return now if periodic else now[1 : grid[0] + 1, 1 : grid[1] + 1, 1 : grid[2] + 1]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """A job of each size, its runs one after the other: closed, periodic, and in both orders of ranks; its folder."""

    @cache
    def of(size):
        folder = tmp_path_factory.mktemp(f"ranks{size}")
        common = ["--grid", "13x10x9", "--steps", "40", "--verify", *MORE[size], "--write"]
        draw = ["--save", folder / "u.png"] if size == 4 and find_spec("matplotlib") else []
        runs = [[*common, folder / "closed.npy", *draw], [*common, folder / "periodic.npy", "--periodic"]]
        if size == 8:
            larger = ["--grid", "16x16x16", "--steps", "20", "--periodic", "--reorder"]
            runs += [[*larger, who] for who in ("none", "topompi")]
        return run_examples("stencil3d", size, *runs, env=PLACED), folder

    return of


@pytest.mark.parametrize("size", [1, 4, pytest.param(8, marks=pytest.mark.long)])
def test_any_number_of_ranks_finds_what_whole_arrays_do(size, outcomes):
    (found, folder), pulse = outcomes(size), "--pulse" in MORE[size]
    pictures = [file.read_bytes()[:4] for file in folder.glob("*.png")]
    assert pictures == [b"\x89PNG"] * (size == 4 and find_spec("matplotlib") is not None)
    for said, name in zip(found[:2], ("closed", "periodic"), strict=True):
        periodic = name == "periodic"
        assert said["identical"] is True
        assert np.prod(said["processes"]) == size
        assert 0 <= said["communication"] <= said["seconds"]
        oracle = expected(GRID, periodic, pulse, 40, 0.4)
        assert np.abs(np.load(folder / f"{name}.npy") - oracle).max() < 1e-12
        if not pulse:
            exact = stencil3d.Problem(GRID, periodic).exact(list(map(np.arange, GRID)), 40 * 0.4)
            assert said["error"] == pytest.approx(np.abs(oracle - exact).max(), rel=1e-6)


def test_any_process_grid_finds_the_same_bits():
    options = ["--grid", "7x9x17", "--steps", "25", "--verify", "--overlap", "--processes"]
    for said in run_examples("stencil3d", 6, *([*options, processes] for processes in ("3x1x2", "1x1x6"))):
        assert said["identical"] is True


def test_a_fingerprint_changes_with_every_bit_and_place():
    generator = np.random.default_rng(1)
    values, points = generator.random((4, 5, 3)), list(map(np.arange, (4, 5, 3)))
    seen = {stencil3d.fingerprint(values, points, values.shape, MPI.COMM_SELF)}
    for at in range(values.size):
        for bit in (0, 31, 63):
            other = values.copy()
            other.view(np.uint64).flat[at] ^= np.uint64(1 << bit)
            seen.add(stencil3d.fingerprint(other, points, values.shape, MPI.COMM_SELF))
    for other in (values[::-1], -values):
        seen.add(stencil3d.fingerprint(other, points, values.shape, MPI.COMM_SELF))
    assert len(seen) == 3 + 3 * values.size


@pytest.mark.long
def test_one_changed_line_moves_ranks_and_no_bit(outcomes):
    plain, ours = outcomes(8)[0][2:]
    assert "ranks" not in plain
    assert "best of the portfolio: predicted to save" in ours["ranks"]
    assert ours["fingerprint"] == plain["fingerprint"]
    assert ours["error"] == plain["error"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grid", "64x64"], "three directions"),
        (["--grid", "64xfourx64"], "whole numbers"),
        (["--grid", "7x7x3"], "expecting 2 points a process or more in each direction on 2x2x2"),
        (["--processes", "3x2x2"], "expecting 8 processes, got 3x2x2"),
        (["--processes=-2x-2x2"], "expecting 8 processes"),
        (["--step", "0.6"], "--step above 0 to 0.5"),
        (["--step", "nan"], "--step above 0 to 0.5"),
        (["--steps", "-1"], "--steps of at least 0"),
        (["--save", "no/such/u.png"], "expecting a directory for no/such/u.png"),
    ],
)
def test_what_cannot_be_computed_is_said(options, words, monkeypatch):
    monkeypatch.setattr("sys.argv", ["stencil3d.py", *options])
    said = {}

    class World:
        rank, size = 0, 8

        def bcast(self, told):
            said["options"], said["problem"] = told
            return told

    with pytest.raises(SystemExit) as ended:
        stencil3d.parse(World())
    assert ended.value.code == 1
    assert said["options"] is None
    assert words in said["problem"]


def test_all_ranks_refuse_together():
    assert failure("stencil3d", 2, "--grid", "3x3x3") == (
        1,
        "stencil3d: --grid: expecting 2 points a process or more in each direction on 2x1x1 processes",
    )
    assert failure("stencil3d", 2, "--reorder", "sideways")[0] == 2
    code, line = failure("stencil3d", 2, "--reorder", "topompi", env={"TOPOMPI_TOPOLOGY": "/no/such/fabric"})
    assert code == 1
    assert "/no/such/fabric" in line


@pytest.mark.long
def test_the_readme_shows_what_happens(tmp_path):
    check_readme("stencil3d", tmp_path)
