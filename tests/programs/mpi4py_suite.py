"""mpi4py's own tests in one process a rank, each outcome written down: ``mpi4py_suite.py TESTS OUTCOMES MODULE...``.

TESTS is the folder ``test`` of mpi4py's source distribution. Rank r appends one line of JSON to ``OUTCOMES/r``
when a test begins and one when it ends, so that a job that hangs shows where. A name with dots is one test.
"""

import json
import sys
import time
import unittest
from pathlib import Path

from mpi4py import MPI


class Outcomes(unittest.TestResult):
    """Writes down what became of each test."""

    def __init__(self, file):
        super().__init__()
        self._file, self._said, self._begun = file, [], 0.0

    def _write(self, test, outcome, said="", seconds=0.0):
        self._file.write(json.dumps([test.id(), outcome, said, seconds]) + "\n")
        self._file.flush()

    def startTest(self, test):
        super().startTest(test)
        self._said, self._begun = [], time.monotonic()
        self._write(test, "begun")

    def stopTest(self, test):
        super().stopTest(test)
        said = self._said or [("passed", "")]
        self._write(test, said[0][0], said[0][1], round(time.monotonic() - self._begun, 3))

    def _say(self, outcome, error):
        self._said.append((outcome, f"{error[0].__name__}: {error[1]}"[:400]))

    def addError(self, test, error):
        super().addError(test, error)
        if isinstance(test, unittest.TestCase):
            self._say("failed", error)
        else:  # of a class or a module, outside of its tests
            self._write(test, "failed", f"{error[0].__name__}: {error[1]}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say("failed", error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._say("failed", error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._said.append(("skipped", reason))


def suite_of(folder, name):
    """The tests of a module, or one test by its name."""
    if "." in name:
        return unittest.defaultTestLoader.loadTestsFromName(name)
    return unittest.TestLoader().discover(str(folder), f"{name}.py")


def main():
    folder, outcomes, *names = sys.argv[1:]
    sys.path.insert(0, folder)
    for package in ("cupy", "numba"):
        sys.modules[package] = None
    suite = unittest.TestSuite(suite_of(folder, name) for name in names)
    with (Path(outcomes) / str(MPI.COMM_WORLD.Get_rank())).open("a") as file:
        suite.run(Outcomes(file))


if __name__ == "__main__":
    main()
