"""Tests that run inside an MPI job: what fails on one rank must not leave the others waiting."""

import sys

import pytest
from mpi4py import MPI


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End the whole job with the failure's text; the other ranks may be inside a collective."""
    if report.failed:
        print(
            f"rank {MPI.COMM_WORLD.Get_rank()}: {report.nodeid}\n{report.longreprtext}", file=sys.__stderr__, flush=True
        )
        MPI.COMM_WORLD.Abort(1)
