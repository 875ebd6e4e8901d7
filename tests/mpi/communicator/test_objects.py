"""Scans and broadcasts of Python objects."""

import pytest

from tests.support import ROOT, pytest_on_ranks


@pytest.mark.parametrize("size", [1, 5])
def test_scans_and_broadcasts_of_objects_equal_native(size):
    assert "passed" in pytest_on_ranks(size, ROOT / "tests" / "programs" / "objects.py")
