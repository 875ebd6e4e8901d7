"""The walk of a program's author, step by step."""

from __future__ import annotations

import pytest

from tests.docs.test_walks import walked
from tests.support import mpirun


@pytest.mark.long
def test_the_author_of_a_program_gets_through(tmp_path):
    walked("author", tmp_path, mpirun())
