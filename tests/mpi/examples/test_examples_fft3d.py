"""examples/fft3d: numpy's transform and the known course of the flow, on any number of ranks and process grid."""

from importlib.util import find_spec

import numpy as np
import pytest

from tests.examples import check_readme, failure, module, run_examples

fft3d = module("fft3d")
PLACED = {"TOPOMPI_TOPOLOGY": "xgft:2,2,2;1,1,1", "TOPOMPI_HOSTS": "h[0000,0007,0002,0003,0004,0005,0006,0001]"}


def oracle(shape, steps, step, viscosity):
    """The energy of the flow from Taylor and Green's vortices, with whole arrays of complex modes."""
    grid = np.meshgrid(*(2 * np.pi * np.arange(extent) / extent for extent in shape), indexing="ij")
    x, y, z = grid
    k = np.stack(np.meshgrid(*(np.fft.fftfreq(extent, 1 / extent) for extent in shape), indexing="ij"))
    kept = np.all([np.abs(one) < extent / 3 for one, extent in zip(k, shape, strict=True)], axis=0)
    square = np.maximum((k**2).sum(axis=0), 1e-300)

    def fields(modes):
        return np.fft.ifftn(modes, axes=(1, 2, 3)).real

    def change(modes):
        force = np.fft.fftn(np.cross(fields(modes), fields(1j * np.cross(k, modes, axis=0)), axis=0), axes=(1, 2, 3))
        force = force * kept
        return force - k * (k * force).sum(axis=0) / square - viscosity * (k**2).sum(axis=0) * modes

    start = np.stack((np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0 * z))
    modes = np.fft.fftn(start, axes=(1, 2, 3))
    for _ in range(steps):
        one = change(modes)
        two = change(modes + step / 2 * one)
        three = change(modes + step / 2 * two)
        four = change(modes + step * three)
        modes = modes + step / 6 * (one + 2 * two + 2 * three + four)
    return (fields(modes) ** 2).sum() / 2 / np.prod(shape)


DRAW = ["--save", "w.png"] if find_spec("matplotlib") else []
KNOWN = ["--shape", "12x12x4", "--plane", "--steps", "5", "--types", "--comm", "topompi"]
SMALL = ["--shape", "6x3x2", "--grid", "4x2", "--plane", "--steps", "3", "--verify"]


@pytest.mark.parametrize(
    ("size", "more", "others"),
    [
        (1, DRAW, []),
        (4, ["--comm", "topompi", *DRAW], [KNOWN]),
        pytest.param(8, ["--grid", "2x4", "--types"], [SMALL], marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_pencils_find_what_whole_arrays_do(size, more, others, tmp_path):
    """Either way to exchange, by ours and the MPI library's communicators.

    The larger jobs have a second run: vortices whose course is known, and more processes than points.
    """
    energy = oracle((13, 10, 9), 4, 0.05, 0.02)
    options = ["--shape", "13x10x9", "--steps", "4", "--step", "0.05", "--viscosity", "0.02", "--verify"]
    more = [str(tmp_path / word) if word == "w.png" else word for word in more]
    said, *rest = run_examples("fft3d", size, [*options, *more], *others, env=PLACED if size == 4 else None)
    assert all(one["error"] < 1e-9 for one in rest if size == 4)
    assert all(one["serial_error"] < 1e-13 for one in rest if size == 8)
    assert said["energy"] == pytest.approx(energy, abs=2e-12)
    assert said["transform_error"] < 1e-14
    assert said["inverse_error"] < 1e-13
    assert said["serial_error"] < 1e-13
    assert np.prod(said["grid"]) == size
    assert 0 <= said["communication"] <= said["seconds"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--grid", "3x1"], "--grid: expecting a grid of 2 processes, got 3x1"),
        (["--shape", "8x8"], "--shape: expecting 2 points or more along each of three directions"),
        (["--shape", "8xax8"], "expecting --shape as 32x32x32"),
        (["--step", "0"], "expecting --steps and --viscosity of at least 0 and --step above 0"),
        (["--save", "/nowhere/x.png"], "/nowhere/x.png"),
    ],
)
def test_what_makes_no_sense_is_said(options, told, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fft3d.py", *options])

    class World:
        rank, size = 0, 2

        def bcast(self, told):
            return told

    with pytest.raises(SystemExit) as ended:
        fft3d.parse(World())
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line or "matplotlib" in line


def test_all_ranks_refuse_together():
    told = "fft3d: --grid: expecting a grid of 2 processes, got 3x1"
    assert failure("fft3d", 2, "--grid", "3x1") == (1, told)


def test_shares_are_nearly_equal_and_leave_nothing_out():
    for extent in range(12):
        for parts in range(1, 8):
            found = fft3d.shares(extent, parts)
            lengths = [one.stop - one.start for one in found]
            assert [place for one in found for place in range(one.start, one.stop)] == list(range(extent))
            assert sorted(lengths, reverse=True) == lengths
            assert max(lengths) - min(lengths) <= 1


@pytest.mark.long
def test_the_readme_shows_what_is_printed(tmp_path):
    check_readme("fft3d", tmp_path)
