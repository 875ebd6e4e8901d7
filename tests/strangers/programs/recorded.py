"""Another package's tests by pytest in one process a rank, each outcome written down: ``recorded.py OUTCOMES WORD...``.

WORDs are pytest's. Rank r appends one line of JSON to ``OUTCOMES/r`` when a test begins and one when it ends, with
its outcome, so that a job that hangs shows where.
"""

import json
import sys
from pathlib import Path

import pytest
from mpi4py import MPI


class Recorder:
    """Writes down what became of each test on this rank."""

    def __init__(self, file):
        self._file, self._outcome, self._said = file, "passed", ""

    def _write(self, test, outcome, said=""):
        self._file.write(json.dumps([test, outcome, said]) + "\n")
        self._file.flush()

    def pytest_runtest_logstart(self, nodeid, location):
        self._outcome, self._said = "passed", ""
        self._write(nodeid, "begun")

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" and self._outcome != "failed":
            self._outcome, self._said = report.outcome, str(report.longrepr)[-400:]

    def pytest_runtest_logfinish(self, nodeid, location):
        self._write(nodeid, self._outcome, self._said)

    def pytest_collectreport(self, report):
        if report.outcome != "passed":  # a module that cannot be imported, or skips itself
            self._write(report.nodeid, report.outcome, str(report.longrepr)[-400:])


def main():
    rank = str(MPI.COMM_WORLD.Get_rank())
    folder, *chosen = sys.argv[1:]
    # No settings of the package's for pytest, such as coverage; no folder that two ranks share.
    bare = ["-q", "-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp-{rank}"]
    with (Path(folder) / rank).open("a") as file:
        pytest.main([*bare, *chosen], plugins=[Recorder(file)])


if __name__ == "__main__":
    main()
