"""examples/cg: the solution of direct solvers, on any number of ranks in any order."""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from mpi4py import MPI
from scipy import sparse
from scipy.sparse.linalg import spsolve

from tests.examples import check_readme, failure, module, run_examples

cg = module("cg")
GRID = (9, 12, 7)
PLACED = {"TOPOMPI_TOPOLOGY": "xgft:2,2,2;1,1,1", "TOPOMPI_HOSTS": "h[0000,0007,0002,0003,0004,0005,0006,0001]"}


def matrix(grid, periodic):
    """The matrix, put together from those of the three directions."""
    whole = sparse.csr_matrix((1, 1))
    for extent in grid:
        line = sparse.lil_matrix((extent, extent))
        line.setdiag(2.0)
        for at in range(extent if periodic else extent - 1):
            line[at, (at + 1) % extent] -= 1
            line[(at + 1) % extent, at] -= 1
        size = whole.shape[0]
        whole = sparse.kron(whole, sparse.eye(extent)) + sparse.kron(sparse.eye(size), line)
    return whole.tocsc()


def solved(grid, periodic):
    """The potential by Gaussian elimination; where sides are joined, of mean 0."""
    right = np.zeros(grid)
    right[tuple(extent // 4 for extent in grid)], right[tuple(3 * extent // 4 for extent in grid)] = 1, -1
    whole = matrix(grid, periodic)
    if not periodic:
        return spsolve(whole, right.ravel()).reshape(grid)
    found = np.zeros(right.size)
    found[1:] = spsolve(whole[1:, 1:], right.ravel()[1:])  # up to a constant: the first point is 0
    return (found - found.mean()).reshape(grid)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """A job of each size, its runs one after the other: grounded, periodic, and in both orders of ranks; its folder."""

    @cache
    def of(size):
        folder = tmp_path_factory.mktemp(f"ranks{size}")
        common = ["--grid", "9x12x7", "--tolerance", "1e-11", "--verify", "--write"]
        draw = ["--save", folder / "u.png"] if size == 4 and find_spec("matplotlib") else []
        runs = [[*common, folder / "grounded.npy", *draw], [*common, folder / "periodic.npy", "--periodic"]]
        if size == 8:
            runs += [["--grid", "14x14x14", "--periodic", "--reorder", who] for who in ("none", "topompi")]
        return run_examples("cg", size, *runs, env=PLACED), folder

    return of


@pytest.mark.parametrize("size", [1, 4, pytest.param(8, marks=pytest.mark.long)])
def test_any_number_of_ranks_finds_what_elimination_does(size, outcomes):
    found, folder = outcomes(size)
    pictures = [file.read_bytes()[:4] for file in folder.glob("*.png")]
    assert pictures == [b"\x89PNG"] * (size == 4 and find_spec("matplotlib") is not None)
    for said, name in zip(found[:2], ("grounded", "periodic"), strict=True):
        assert np.prod(said["processes"]) == size
        assert said["residual"] <= 1e-11
        assert said["error"] <= said["bound"]
        assert 0 <= said["communication"] == pytest.approx(said["halo"] + said["sums"])
        exact = solved(GRID, name == "periodic")
        assert np.abs(np.load(folder / f"{name}.npy") - exact).max() < 1e-9 * np.abs(exact).max()


def test_iterations_end_where_they_are_told_to(monkeypatch):
    block = cg.Block(MPI.COMM_SELF.Create_cart([1, 1, 1]), (9, 9, 9))
    right = cg.charges((9, 9, 9))
    residuals = []
    for most in (1, 5, 10, 1000):
        solution, iterations, residual = cg.conjugate_gradients(block, right, 1e-9, most)
        assert iterations <= most
        left = right.ravel() - matrix((9, 9, 9), False) @ solution.ravel()
        assert residual == pytest.approx(np.linalg.norm(left) / np.linalg.norm(right), rel=1e-5)
        residuals.append(residual)
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[-1] <= 1e-9
    assert iterations < 100
    block.free()


@pytest.mark.long
def test_one_changed_line_moves_ranks_and_no_bit(outcomes):
    """The sums of eight bytes are the MPI library's on both sides, in the order of the process grid."""
    plain, ours = outcomes(8)[0][2:]
    assert "ranks" not in plain
    assert "best of the portfolio: predicted to save" in ours["ranks"]
    assert (ours["fingerprint"], ours["iterations"]) == (plain["fingerprint"], plain["iterations"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grid", "64x64"], "three directions"),
        (["--grid", "8x8x8.5"], "whole numbers"),
        (["--grid", "4x4x1"], "2 points or more in each direction"),
        (["--grid", "3x9x9", "--processes", "4x2x1"], "no fewer than processes of 4x2x1"),
        (["--processes", "3x2x2"], "expecting 8 processes, got 3x2x2"),
        (["--tolerance", "0"], "--tolerance between 0 and 1"),
        (["--iterations", "0"], "--iterations of at least 1"),
        (["--write", "no/such/u.npy"], "expecting a directory for no/such/u.npy"),
    ],
)
def test_what_cannot_be_computed_is_said(options, words, monkeypatch):
    monkeypatch.setattr("sys.argv", ["cg.py", *options])
    options, problem = None, ""

    class World:
        rank, size = 0, 8

        def bcast(self, told):
            nonlocal options, problem
            options, problem = told
            return told

    with pytest.raises(SystemExit) as ended:
        cg.parse(World())
    assert ended.value.code == 1
    assert options is None
    assert words in problem


def test_all_ranks_refuse_together():
    code, line = failure("cg", 2, "--grid", "1x3x3")
    assert code == 1
    assert line == "cg: --grid: expecting 2 points or more in each direction, and no fewer than processes of 2x1x1"
    assert failure("cg", 2, "--iterations", "many")[0] == 2


@pytest.mark.long
def test_the_readme_shows_what_happens(tmp_path):
    check_readme("cg", tmp_path)
