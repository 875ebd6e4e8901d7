"""Docstrings of public functions of the rooms that import MPI."""

from __future__ import annotations

import pytest

from tests.docs.test_docstrings import (
    owed,
)

ON_MPI = (
    "osu_like_bench",
    "studies",
    "topompi.mpi.communicator",
    "topompi.mpi.dispatch",
    "topompi.mpi.execution",
    "topompi.mpi.launcher",
    "topompi.mpi.probe",
    "topompi.mpi.profile",
    "topompi.mpi.selection",
    "topompi.mpi.tuning",
)


@pytest.mark.parametrize("package", ON_MPI)
def test_so_do_those_that_run_on_mpi(package: str) -> None:
    from mpi4py import MPI

    assert MPI.COMM_SELF.size == 1  # what these packages import works
    assert owed(package) == {}
