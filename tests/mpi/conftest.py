"""All tests here need an MPI library, and run with each."""

import os
from pathlib import Path

import pytest

from tests.support import TRANSPORT

os.environ.update(TRANSPORT)  # of this process and of all that it starts


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them with ``needs_mpi``."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.needs_mpi)
