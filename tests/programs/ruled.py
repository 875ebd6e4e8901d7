"""Every call in every form under a rule for every algorithm of its collective: it runs, or the counters say why not.

Prints one JSON row a case on rank 0: method, form, the rule's algorithm, what ran, the reason; and the bytes counted.
"""

import json
import os
import tempfile
from pathlib import Path

from matrix import FABRIC, PLACEMENTS, plain_cases
from mpi4py import MPI
from operations import OPERATIONS, factors, make_call

import topompi
from topompi.mpi.dispatch.counters import counters
from topompi.schedules import ALGORITHMS
from topompi.schedules.segments import cuttable
from topompi.topology import TopologyInterface

WORLD = MPI.Intracomm(MPI.COMM_WORLD)


def forms(comm, operation, case):
    """The forms of a call, by name, as functions without arguments that run it."""
    method = operation.method
    call = make_call(operation, case, comm.rank, [1, 2])  # whose datatypes and memory live as long as this does
    yield "blocking", lambda: getattr(comm, method)(*call.arguments)
    yield "non-blocking", lambda: getattr(comm, f"I{method.lower()}")(*call.arguments).Wait()
    if method != "Barrier":
        yield "persistent", lambda: run_twice(getattr(comm, f"{method}_init")(*call.arguments))
    if method == "Barrier" or (operation.blocks == "equal" and hasattr(comm, method.lower())):
        alone = () if method == "Barrier" else (list(range(comm.size)),)
        yield "object", lambda: getattr(comm, method.lower())(*alone)


def run_twice(request):
    for _ in range(2):
        request.Start()
        request.Wait()
    request.Free()


def rows_of(comm, operation, algorithm):
    """What the counters say of each form of a call."""
    case = next(plain_cases(factors(operation, list(PLACEMENTS), [comm.size])))
    for form, call in forms(comm, operation, case):
        counters.rows.clear()
        call()
        ((_, _, ran), row), *more = counters.rows.items()
        assert not more, counters.rows
        yield operation.method, form, algorithm, ran, row.reason, row.bytes


def main():
    counters.enabled = True
    os.environ["TOPOMPI_TUNE"] = "off"
    folder = Path(WORLD.bcast(tempfile.mkdtemp() if WORLD.rank == 0 else None))
    hosts = [FABRIC.fabric.hosts[host] for host in PLACEMENTS["block"][: WORLD.size]]
    interface = TopologyInterface.place(hosts, FABRIC.routes, virtual=True)
    for collective in dict.fromkeys(one.collective for one in OPERATIONS):
        cut = [f"{name}/16" for name in cuttable(collective)]
        for number, name in enumerate(["native", *ALGORITHMS.get(collective, ()), *cut]):
            path = folder / f"{collective}{number}.json"
            rules = [{"collective": collective, "algorithm": name}]
            path.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": rules}))
            os.environ["TOPOMPI_RULES"] = str(path)
            comm = topompi.Intracomm(WORLD.Dup(), interface)
            for operation in OPERATIONS:
                if operation.collective == collective:
                    for row in rows_of(comm, operation, name):
                        if WORLD.rank == 0:
                            print(json.dumps(row))
            comm.Free()
    counters.enabled = False


if __name__ == "__main__":
    main()
