"""Consoles of jobs print what the documents show."""

import os
import subprocess
import sys

import pytest

from tests.docs.test_readme import OF_JOBS, consoles_print_what_they_say, of, run, split
from tests.support import ROOT, mpirun


def run_with_mpi(line, folder):
    """Run a command as a user's shell would, with this Python and its MPI, and return the finished process."""
    given, words = split(line)
    if words[0] == "topompi":
        return run(line, folder)
    if words[0] == "mpirun":
        words = [*mpirun(), *(word for word in words[1:] if word != "--oversubscribe")]  # mpirun() has what is needed
    words = [sys.executable if word == "python" else word for word in words]
    env = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "120", **given}
    return subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder, env=env)


@of(OF_JOBS)
@pytest.mark.long
def test_consoles_of_jobs_print_what_the_document_says(document, tmp_path):
    consoles_print_what_they_say(document, tmp_path, run_with_mpi)
