"""Misused collectives: what each rank gets, and whether the next calls are right: ``misuse.py OUTCOMES CASE...``.

Runs natively (``-m mpi4py``) and through the launcher (``-m topompi``). Each case has a communicator of its own; rank r
appends a line of JSON to ``OUTCOMES/r`` when one begins and when it ends. A rank that waits longer than ``LIMIT``
seconds ends the job.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from tests.hostile.generated import call_of

LIMIT = int(os.environ.get("HOSTILE_LIMIT", "8"))  # seconds
RANK, SIZE = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
ROOT, LAST = RANK == 0, RANK == SIZE - 1
VECTOR = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
UNCOMMITTED = MPI.DOUBLE.Create_contiguous(2)


def zeros(number=4, kind="d"):
    return np.zeros(number, kind)


def fixed(number=4):
    """An array that may not be written to."""
    array = np.zeros(number)
    array.flags.writeable = False
    return array


def aliased(call):
    """Call with one buffer twice."""
    both = zeros(4 * SIZE)
    call(both)


def freed_type():
    kind = MPI.DOUBLE.Create_contiguous(2).Commit()
    kind.Free()
    return kind


class Raises:
    """A buffer that raises when it is looked at."""

    def __buffer__(self, flags):
        raise MemoryError("no buffer today")

    def __dlpack__(self, **options):
        raise MemoryError("no buffer today")

    def __dlpack_device__(self):
        raise MemoryError("no buffer today")


# Name -> what every rank calls. Those under "everywhere" have the defect on all ranks, the others on some.
EVERYWHERE = {
    "double, BAND": lambda c: c.Allreduce(zeros(), zeros(), MPI.BAND),
    "double, BAND, reduce": lambda c: c.Reduce(zeros(), zeros(), MPI.BAND),
    "double, BAND, scan": lambda c: c.Scan(zeros(), zeros(), MPI.BAND),
    "double, BAND, exscan": lambda c: c.Exscan(zeros(), zeros(), MPI.BAND),
    "double, BAND, scattered": lambda c: c.Reduce_scatter_block(zeros(SIZE), zeros(1), MPI.BAND),
    "double, BAND, scattered by counts": lambda c: c.Reduce_scatter(zeros(SIZE), zeros(1), None, MPI.BAND),
    "counts are halves": lambda c: c.Reduce_scatter(zeros(SIZE), zeros(1), [1.5] * SIZE),
    "counts are doubles": lambda c: c.Reduce_scatter(zeros(SIZE), zeros(1), np.ones(SIZE)),
    "counts are an array of bools": lambda c: c.Reduce_scatter(zeros(SIZE), zeros(1), np.ones(SIZE, bool)),
    "counts are one number": lambda c: c.Reduce_scatter(zeros(SIZE), zeros(1), 1),
    "double, BAND, in place": lambda c: c.Allreduce(MPI.IN_PLACE, zeros(), MPI.BAND),
    "double, MAXLOC": lambda c: c.Allreduce(zeros(), zeros(), MPI.MAXLOC),
    "bytes, SUM": lambda c: c.Allreduce([zeros(), MPI.BYTE], [zeros(), MPI.BYTE]),
    "vector, SUM": lambda c: c.Allreduce([zeros(8), 1, VECTOR], [zeros(8), 1, VECTOR]),
    "vector, SUM, reduce": lambda c: c.Reduce([zeros(8), 1, VECTOR], [zeros(8), 1, VECTOR] if ROOT else None),
    "complex, MAX": lambda c: c.Allreduce(zeros(4, "D"), zeros(4, "D"), MPI.MAX),
    "no operation": lambda c: c.Allreduce(zeros(), zeros(), MPI.OP_NULL),
    "operation None": lambda c: c.Allreduce(zeros(), zeros(), None),
    "operation of Python": lambda c: c.Allreduce(zeros(), zeros(), max),
    "types differ": lambda c: c.Allreduce(zeros(), zeros(4, "i")),
    "counts differ": lambda c: c.Allreduce(zeros(), zeros(5)),
    "counts differ, scattered": lambda c: c.Reduce_scatter_block(zeros(SIZE + 1), zeros(1)),
    "one buffer twice": lambda c: aliased(lambda b: c.Allreduce(b, b)),
    "one buffer twice, reduce": lambda c: aliased(lambda b: c.Reduce(b, b if ROOT else None)),
    "one buffer twice, scan": lambda c: aliased(lambda b: c.Scan(b, b)),
    "one buffer twice, exscan": lambda c: aliased(lambda b: c.Exscan(b, b)),
    "one buffer twice, allgather": lambda c: aliased(lambda b: c.Allgather(b[:4], b)),
    "one buffer twice, gather": lambda c: aliased(lambda b: c.Gather(b[:4], b if ROOT else None)),
    "one buffer twice, alltoall": lambda c: aliased(lambda b: c.Alltoall(b, b)),
    "one buffer twice, alltoallv": lambda c: aliased(lambda b: c.Alltoallv(b, b)),
    "in place for all, bcast": lambda c: c.Bcast(MPI.IN_PLACE),
    "in place as receive buffer": lambda c: c.Allreduce(zeros(), MPI.IN_PLACE),
    "uncommitted": lambda c: c.Bcast([zeros(), 2, UNCOMMITTED]),
    "uncommitted, allgather": lambda c: c.Allgather([zeros(2), 1, UNCOMMITTED], [zeros(2 * SIZE), 1, UNCOMMITTED]),
    "uncommitted, gather": lambda c: c.Gather([zeros(2), 1, UNCOMMITTED], [zeros(2 * SIZE), 1, UNCOMMITTED]),
    "uncommitted, gatherv": lambda c: c.Gatherv([zeros(2), 1, UNCOMMITTED], [zeros(2 * SIZE), [1] * SIZE, UNCOMMITTED]),
    "uncommitted, scatter": lambda c: c.Scatter([zeros(2 * SIZE), 1, UNCOMMITTED], [zeros(2), 1, UNCOMMITTED]),
    "uncommitted, alltoall": lambda c: c.Alltoall([zeros(2 * SIZE), 1, UNCOMMITTED], [zeros(2 * SIZE), 1, UNCOMMITTED]),
    "uncommitted, alltoallw": lambda c: c.Alltoallw(
        [zeros(2 * SIZE), ([1] * SIZE, [16 * r for r in range(SIZE)]), [UNCOMMITTED] * SIZE],
        [zeros(2 * SIZE), ([1] * SIZE, [16 * r for r in range(SIZE)]), [UNCOMMITTED] * SIZE],
    ),
    "no type": lambda c: c.Bcast([zeros(), 2, MPI.DATATYPE_NULL]),
    "big-endian": lambda c: c.Bcast(zeros(4, ">f8")),
    "big-endian, allreduce": lambda c: c.Allreduce(zeros(4, ">f8"), zeros(4, ">f8")),
    "objects": lambda c: c.Bcast(np.array([object()] * 4)),
    "objects, allgather": lambda c: c.Allgather(np.array([object()]), np.array([object()] * SIZE)),
    "a count of 1.5": lambda c: c.Bcast([zeros(), 1.5, MPI.DOUBLE]),
    "a count of 2.0": lambda c: c.Allgather([zeros(2), 2.0, MPI.DOUBLE], zeros(2 * SIZE)),
    "negative count": lambda c: c.Bcast([zeros(), -1, MPI.DOUBLE]),
    "counts too few": lambda c: c.Allgatherv(zeros(1), [zeros(SIZE), [1] * (SIZE - 1)]),
    "counts of 1.5": lambda c: c.Allgatherv(zeros(1), [zeros(SIZE), [1.5] * SIZE]),
    "root 0.0": lambda c: c.Bcast(zeros(), 0.0),
    "root True": lambda c: c.Bcast(zeros(), False),
    "root of numpy": lambda c: c.Bcast(zeros(), np.int64(0)),
    "root None": lambda c: c.Bcast(zeros(), None),
    "root beyond": lambda c: c.Bcast(zeros(), SIZE),
    "root negative": lambda c: c.Reduce(zeros(), zeros(), MPI.SUM, -5),
    "a string": lambda c: c.Bcast("abcd"),
    "a number": lambda c: c.Bcast(3),
    "not contiguous": lambda c: c.Bcast(zeros(8)[::2]),
    "raises when looked at": lambda c: c.Allreduce(Raises(), zeros()),
    "five items": lambda c: c.Bcast([zeros(), 1, 0, MPI.DOUBLE, 3]),
    "unknown code": lambda c: c.Bcast([zeros(), "no such type"]),
    "freed type": lambda c: c.Bcast([zeros(), 2, freed_type()]),
    "all read-only": lambda c: c.Allreduce(zeros(), fixed()),
    "all read-only, alltoall": lambda c: c.Alltoall(zeros(SIZE), fixed(SIZE)),
    "not a multiple": lambda c: c.Alltoall(zeros(SIZE + 1), zeros(SIZE + 1)),
    "nowhere": lambda c: c.Allgather(zeros(2), None),
    "too short for all": lambda c: c.Allgather(zeros(3), zeros(2 * SIZE)),
    "too long for all": lambda c: c.Allgather(zeros(2), zeros(3 * SIZE)),
}
SOMEWHERE = {
    "no room at the root": lambda c: c.Gather(zeros(2), None),
    "too short at the root": lambda c: c.Gather(zeros(2), zeros(SIZE) if ROOT else None),
    "too long at the root": lambda c: c.Gather(zeros(2), zeros(3 * SIZE) if ROOT else None),
    "too short at the root, by counts": lambda c: c.Gatherv(zeros(2), [zeros(SIZE), [1] * SIZE] if ROOT else None),
    "read-only at the root": lambda c: c.Gather(zeros(2), fixed(2 * SIZE) if ROOT else None),
    "read-only at the root, reduce": lambda c: c.Reduce(zeros(), fixed() if ROOT else None),
    "read-only at the last": lambda c: c.Bcast(fixed() if LAST else zeros()),
    "too short at the last": lambda c: c.Bcast(zeros(2 if LAST else 4)),
    "too short at the last, scatter": lambda c: c.Scatter(zeros(2 * SIZE) if ROOT else None, zeros(1 if LAST else 2)),
    "no type at the root, gatherv": lambda c: c.Gatherv(
        zeros(2), [zeros(2 * SIZE), [2] * SIZE, MPI.DATATYPE_NULL] if ROOT else None
    ),
    "gaps at the root, gatherv": lambda c: c.Gatherv(zeros(2), zeros(4 * SIZE)[::2] if ROOT else None),
    "longer at the last": lambda c: c.Allreduce(zeros(6 if LAST else 4), zeros(6 if LAST else 4)),
    "shorter at the last": lambda c: c.Allreduce(zeros(4 if LAST else 6), zeros(4 if LAST else 6)),
    "longer at the last, long": lambda c: c.Allreduce(zeros(6000 if LAST else 5000), zeros(6000 if LAST else 5000)),
    "shorter from the root": lambda c: c.Bcast(zeros(4 if ROOT else 6)),
    "longer from the root": lambda c: c.Bcast(zeros(6 if ROOT else 4)),
    "shorter from the root, long": lambda c: c.Bcast(zeros(5000 if ROOT else 6000)),
    "longer blocks from the last": lambda c: c.Alltoall(
        zeros((6 if LAST else 4) * SIZE), zeros((6 if LAST else 4) * SIZE)
    ),
    "other counts at the last": lambda c: c.Allgatherv(zeros(2), [zeros(3 * SIZE), [3 if LAST else 2] * SIZE]),
    "too long at the last, gather": lambda c: c.Gather(zeros(3 if LAST else 2), zeros(2 * SIZE) if ROOT else None),
}
# Valid, if odd: they have to work.
VALID = {
    "nothing at all, allreduce": lambda c: c.Allreduce([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, reduce": lambda c: c.Reduce([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, bcast": lambda c: c.Bcast([None, 0, MPI.INT]),
    "nothing at all, allgather": lambda c: c.Allgather([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, allgatherv": lambda c: c.Allgatherv([None, 0, MPI.INT], [None, [0] * SIZE, MPI.INT]),
    "nothing at all, gather": lambda c: c.Gather([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, gatherv": lambda c: c.Gatherv([None, 0, MPI.INT], [None, [0] * SIZE, MPI.INT]),
    "nothing at all, scatter": lambda c: c.Scatter([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, scatterv": lambda c: c.Scatterv([None, [0] * SIZE, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, alltoall": lambda c: c.Alltoall([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, alltoallv": lambda c: c.Alltoallv([None, [0] * SIZE, MPI.INT], [None, [0] * SIZE, MPI.INT]),
    "nothing at all, scattered": lambda c: c.Reduce_scatter_block([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "nothing at all, scan": lambda c: c.Scan([None, 0, MPI.INT], [None, 0, MPI.INT]),
    "empty arrays, allreduce": lambda c: c.Allreduce(zeros(0), zeros(0)),
    "empty arrays, allgather": lambda c: c.Allgather(zeros(0), zeros(0)),
    "empty arrays, twice the same": lambda c: aliased(lambda b: c.Allreduce(b[:0], b[:0])),
}
CASES = EVERYWHERE | SOMEWHERE | VALID


def outcome(call):
    """What one rank got: the error's type and class, or that it returned."""
    try:
        call()
    except MPI.Exception as error:
        return f"Exception {error.Get_error_class()}"
    except Exception as error:
        return type(error).__name__
    return "returned"


def next_calls(comm):
    """Correct calls; True where their results are right."""
    total, every, there = np.empty(4), np.empty((SIZE, 2)), np.empty(SIZE)
    comm.Allreduce(np.full(4, RANK + 1.0), total)
    comm.Allgather(np.full(2, float(RANK)), every)
    comm.Alltoall(np.full(SIZE, float(RANK)), there)
    gathered = np.zeros((SIZE, 2)) if ROOT else None
    comm.Gather(np.full(2, float(RANK)), gathered)
    word = np.full(4, 7.0 if ROOT else 0.0)
    comm.Bcast(word)
    ranks = np.arange(SIZE)
    right = (total == ranks.sum() + SIZE).all() and (every == ranks[:, None]).all() and (there == ranks).all()
    return bool(right and (word == 7).all() and (gathered is None or (gathered == ranks[:, None]).all()))


def main():
    folder, *names = sys.argv[1:]
    plain = MPI.Intracomm(MPI.COMM_WORLD).Dup()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with (Path(folder) / str(RANK)).open("a") as file:
        for name in names or CASES:

            def write(*said, name=name):
                file.write(json.dumps([name, *said]) + "\n")
                file.flush()

            plain.Barrier()
            comm = MPI.COMM_WORLD.Dup()
            next_calls(comm)  # as in a program that is under way
            write("begun")
            signal.alarm(LIMIT)
            call = CASES[name] if name in CASES else call_of(name, RANK, SIZE)
            got = outcome(lambda call=call, comm=comm: call(comm))
            write("got", got)
            plain.Barrier()
            right = []
            then = outcome(lambda comm=comm, right=right: right.append(next_calls(comm)))
            write("then", "right" if right == [True] else "wrong" if right else then)
            signal.alarm(0)
            plain.Barrier()  # the communicator stays: a new one in its place would get what is left on it


if __name__ == "__main__":
    main()
