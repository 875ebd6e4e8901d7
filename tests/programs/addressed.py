"""Messages of which an address and a count say all: their memory has length 0, or any that is too short.

Prints the calls whose results differ from those of the same calls with whole arrays on mpi4py's own communicator.
"""

import numpy as np
from mpi4py import MPI

world, plain = MPI.COMM_WORLD, MPI.Intracomm(MPI.COMM_WORLD)
RANK, SIZE = world.rank, world.size
EACH = 16
PLACES = [EACH * rank for rank in range(SIZE)]
GAPS = MPI.DOUBLE.Create_vector(4, 2, 4).Create_resized(0, 8 * EACH).Commit()


def at(array, nbytes):
    """Memory of so many bytes at an array's address."""
    return MPI.memory.fromaddress(array.ctypes.data, nbytes)


def one(array, memory):
    return [memory(array), EACH, MPI.DOUBLE]


def gaps(array, memory):
    return [memory(array), 1, GAPS]


def counted(array, memory):
    return [memory(array), ([EACH] * SIZE, PLACES), MPI.DOUBLE]


def typed(array, memory):
    return [memory(array), ([EACH] * SIZE, [8 * place for place in PLACES]), [MPI.DOUBLE] * SIZE]


def in_place(array, memory):
    return MPI.IN_PLACE


def whole(array, memory):
    return [memory(array), EACH * SIZE, MPI.DOUBLE]


SUM, ROOT = (MPI.SUM,), (SIZE - 1,)
CASES = [
    ("Bcast", [one], ROOT),
    ("Bcast", [gaps], ROOT),
    ("Gather", [one, one], ROOT),
    ("Gather", [gaps, gaps], ROOT),
    ("Gatherv", [one, counted], ROOT),
    ("Scatter", [one, one], ROOT),
    ("Scatterv", [counted, one], ROOT),
    ("Allgather", [one, one], ()),
    ("Allgather", [in_place, one], ()),
    ("Allgather", [gaps, gaps], ()),
    ("Allgatherv", [one, counted], ()),
    ("Allgatherv", [in_place, counted], ()),
    ("Alltoall", [one, one], ()),
    ("Alltoallv", [counted, counted], ()),
    ("Alltoallw", [typed, typed], ()),
    ("Reduce", [one, one], SUM + ROOT),
    ("Allreduce", [one, one], SUM),
    ("Allreduce", [in_place, one], SUM),
    ("Reduce_scatter_block", [one, one], SUM),
    ("Reduce_scatter", [whole, one], ([EACH] * SIZE, MPI.SUM)),
    ("Scan", [one, one], SUM),
    ("Exscan", [one, one], SUM),
]
LENGTHS = {"nothing": 0, "a double": 8, "another on each rank": 8 * RANK}


def made(comm, form, name, messages, rest, memory):
    """What a call leaves in this rank's arrays."""
    arrays = [np.arange(EACH * SIZE) * (RANK + 1.0) + number for number in range(len(messages))]
    given = [message(array, memory) for message, array in zip(messages, arrays, strict=True)]
    if form == "blocking":
        getattr(comm, name)(*given, *rest)
    elif form == "non-blocking":
        getattr(comm, f"I{name.lower()}")(*given, *rest).Wait()
    else:
        request = getattr(comm, f"{name}_init")(*given, *rest)
        request.Start()
        request.Wait()
        request.Free()
    return arrays


def main():
    asked, wrong = 0, []
    for name, messages, rest in CASES:
        right = made(plain, "blocking", name, messages, rest, lambda array: array)
        for length, nbytes in LENGTHS.items():
            for form in ("blocking", "non-blocking", "persistent"):
                given = made(world, form, name, messages, rest, lambda array, n=nbytes: at(array, n))
                asked += 1
                if not all(map(np.array_equal, given, right)):
                    wrong.append(f"{form} {name} of {messages[-1].__name__}, {length}")
    for refused in ([bytearray(4), (1, 5), MPI.BYTE], [None, 1, MPI.BYTE], [MPI.BOTTOM, (1, 1), MPI.BYTE]):
        try:
            world.Bcast(refused, ROOT[0])
            wrong.append(f"{refused} is no error")
        except ValueError:
            asked += 1
    print(f"{asked} right" if not wrong else "\n".join(wrong), flush=True)


main()
