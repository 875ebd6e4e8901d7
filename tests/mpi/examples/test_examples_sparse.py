"""examples/sparse: the solution of a direct solver, with topompi's neighbourhood collectives and with the library's."""

import numpy as np
import pytest
from mpi4py import MPI

from tests.examples import check_readme, failure, module, run_examples

PLACED = {"TOPOMPI_TOPOLOGY": "xgft:2,2,2;1,1,1", "TOPOMPI_HOSTS": "h[0000-0003]", "TOPOMPI_NEIGHBOURS": "hosts"}

sparse = module("sparse")


@pytest.mark.parametrize("size", [1, pytest.param(5, marks=pytest.mark.long), 8])
def test_any_number_of_ranks_finds_what_elimination_does(size):
    common = ["--points", "13", "--tolerance", "1e-12", "--verify"]
    runs = [[*common, "--levels", levels] for levels in ("0", "1", "2")]
    found = run_examples(
        "sparse", size, *runs, [*runs[2], "--neighbours", "library"], env=PLACED if size == 8 else None
    )
    assert [said["rows"] for said in found] == [13**3, 7**3, 4**3, 4**3]
    assert all(said["error"] < 1e-10 for said in found)
    assert found[2]["iterations"] == found[3]["iterations"]
    assert found[2]["neighbours"] == size - 1


def test_a_level_has_the_sums_of_the_finest_one_for_smooth_vectors():
    """Smoothed prolongations keep symmetry and definiteness."""
    matrix = sparse.coarse(6, 1).toarray()
    assert np.allclose(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > 0
    rows = sparse.Rows(MPI.COMM_SELF, sparse.coarse(6, 1))
    vector = np.random.default_rng(1).random(27)
    assert np.allclose(rows.times(vector), matrix @ vector)
    rows.free()


def test_wrong_options_are_refused():
    assert failure("sparse", 2, "--points", "1")[0] == 2


def test_the_readme_shows_what_is_printed(tmp_path):
    check_readme("sparse", tmp_path)
