"""AccaSim on the first jobs of a log: ``PYTHON accasim_rate.py LOG JOBS NODES``; PYTHON has accasim 1.1.3.

It prints jobs per second of processor time. It imports nothing of topompi, because `many_jobs accasim` starts it with
another Python. Nodes have one core each; the policy is EASY with first fit.
"""

from __future__ import annotations

import collections
import collections.abc
import gzip
import json
import os
import sys
import tempfile
import time

collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  # AccaSim uses the name of Python before 3.10


def first_jobs(path: str, count: int) -> list[str]:
    """Return the lines of jobs that ran, with size and limit as topompi uses them, and one unit of memory."""
    found: list[str] = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            words = line.split()
            if line.startswith(";") or int(words[3]) < 0 or max(int(words[4]), int(words[7])) <= 0:
                continue
            size, request = (words[4] if int(words[4]) > 0 else words[7]), int(words[8])
            words[4] = words[7] = size
            words[8] = str(request if request > 0 else max(1, int(words[3])))
            words[6] = words[9] = "1"
            found.append(" ".join(words))
            if len(found) == count:
                break
    return found


def main(path: str, count: int, nodes: int) -> None:
    """Print the rate of one run, in jobs per second."""
    from accasim.base.allocator_class import FirstFit  # type: ignore[import-not-found]
    from accasim.base.scheduler_class import EASYBackfilling  # type: ignore[import-not-found]
    from accasim.base.simulator_class import Simulator  # type: ignore[import-not-found]

    jobs = first_jobs(path, count)
    os.chdir(tempfile.mkdtemp())
    with open("log.swf", "w", encoding="utf-8") as log:
        log.write("\n".join(jobs) + "\n")
    with open("system.json", "w", encoding="utf-8") as system:
        json.dump({"groups": {"node": {"core": 1, "mem": 10**6}}, "resources": {"node": nodes}}, system)
    quiet = dict.fromkeys(("statistics_output", "show_statistics", "scheduling_output"), False)
    simulator = Simulator("log.swf", "system.json", EASYBackfilling(FirstFit()), **quiet)
    began = time.process_time()
    simulator.start_simulation()
    print(len(jobs) / (time.process_time() - began))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
