"""Messages that the MPI library sends in collective calls: how many from each rank to each, and how many bytes.

Open MPI's monitoring component counts them: start with ``--mca pml_monitoring_enable 1``. Reads calls from the file
that its argument names, and prints what rank 0 gathered, both as JSON.
"""

import ctypes
import json
import sys

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD


class Counter:
    """A variable of the tool interface that has a number for each rank.

    :param library: that has the interface.
    :param session: of the interface.
    :param name: of the variable.
    """

    CLASS = 2  # MPI_T_PVAR_CLASS_SIZE of Open MPI

    def __init__(self, library, session, name):
        self.library, self.session, self.handle = library, session, ctypes.c_void_p()
        index, count = ctypes.c_int(), ctypes.c_int()
        comm = ctypes.c_void_p(MPI._handleof(COMM))
        done(library.MPI_T_pvar_get_index(name.encode(), self.CLASS, ctypes.byref(index)))
        handle = ctypes.byref(self.handle)
        done(library.MPI_T_pvar_handle_alloc(session, index, ctypes.byref(comm), handle, ctypes.byref(count)))
        done(library.MPI_T_pvar_start(session, self.handle))
        self.values = np.zeros(count.value, dtype=np.uint64)

    def read(self):
        address = ctypes.c_void_p(self.values.ctypes.data)
        done(self.library.MPI_T_pvar_read(self.session, self.handle, address))
        return self.values.astype(np.int64)


def done(code):
    if code != 0:
        raise RuntimeError(f"expecting the tool interface to answer, got error {code}")


def counters():
    """Of messages, and of their bytes."""
    library = ctypes.CDLL("libmpi.so.40")
    session, provided = ctypes.c_void_p(), ctypes.c_int()
    done(library.MPI_T_init_thread(0, ctypes.byref(provided)))
    done(library.MPI_T_pvar_session_create(ctypes.byref(session)))
    return [Counter(library, session, f"pml_monitoring_messages_{what}") for what in ("count", "size")]


def run(method, nbytes, item, commutative, root):
    """One call of a size as models of libraries count it."""
    size = COMM.size
    kind = {1: MPI.BYTE, 8: MPI.DOUBLE}[item]
    op = MPI.SUM if commutative else ORDERED
    if item == 1:
        op = MPI.BOR
    mine = np.zeros(nbytes, dtype=np.uint8)
    call = getattr(COMM, method)
    if method == "Bcast":
        call([mine, kind], root)
    elif method in ("Reduce", "Allreduce", "Scan", "Exscan"):
        arguments = [mine, kind], [np.zeros_like(mine), kind], op
        call(*arguments, root) if method == "Reduce" else call(*arguments)
    elif method in ("Reduce_scatter", "Reduce_scatter_block"):
        # Without counts mpi4py asks the other ranks for them.
        counts = {"recvcounts": [nbytes // size // item] * size} if method == "Reduce_scatter" else {}
        call([mine, kind], [np.zeros(nbytes // size, dtype=np.uint8), kind], **counts, op=op)
    else:
        blocks(call, method, mine, kind, root)


def blocks(call, method, mine, kind, root):
    """A call in which each rank has a block for or from each, or for or from the root."""
    all_of = np.zeros(COMM.size * len(mine), dtype=np.uint8)
    each = [all_of, len(mine) // kind.Get_size(), kind] if not method.endswith("v") else None
    each = [all_of, [len(mine) // kind.Get_size()] * COMM.size, kind] if each is None else [all_of, kind]
    if method == "Alltoallw":
        each = [all_of, [len(mine)] * COMM.size, [len(mine) * k for k in range(COMM.size)], [MPI.BYTE] * COMM.size]
    own, rooted = [mine, kind], COMM.rank == root
    if method.startswith("Alltoall"):
        call(each, each[:1] and [np.zeros_like(all_of), *each[1:]])
    elif method.startswith("Allgather"):
        call(own, each)
    elif method.startswith("Gather"):
        call(own, each if rooted else None, root)
    else:
        call(each if rooted else None, own, root)


ORDERED = MPI.Op.Create(lambda incoming, into, kind: None, commute=False)


def main():
    with open(sys.argv[1]) as file:
        calls = json.load(file)
    count, size = counters()
    found = []
    for call in calls:
        before = count.read(), size.read()
        run(*call)
        found.append(((count.read() - before[0]).tolist(), (size.read() - before[1]).tolist()))
    ranks = COMM.gather(found)
    if COMM.rank == 0:
        print(json.dumps(ranks))


main()
