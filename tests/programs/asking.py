"""What programs and packages ask of communicators and their classes; rank 0 prints the answers.

Run natively and through the launcher: every line is the same.
"""

import abc
import ctypes
import pickle

import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5

WORLD = MPI.COMM_WORLD
SIZE = WORLD.Get_size()
answers = []


def say(name, *values):
    answers.append(f"{name}: {' '.join(map(str, values))}")


grid = WORLD.Create_cart([SIZE, 1])
made = {
    "world": WORLD,
    "self": MPI.COMM_SELF,
    "dup": WORLD.Dup(),
    "clone": WORLD.Clone(),
    "split": WORLD.Split(0, 0),
    "split_type": WORLD.Split_type(MPI.COMM_TYPE_SHARED),
    "create": WORLD.Create(WORLD.Get_group()),
    "create_group": WORLD.Create_group(WORLD.Get_group()),
    "grid": grid,
    "part of a grid": grid.Sub([True, False]),
    "neighbours": WORLD.Create_dist_graph_adjacent([], []),
    "another handle": MPI.Intracomm(WORLD),
    "from Fortran": MPI.Intracomm.f2py(WORLD.py2f()),
    "from a handle": type(WORLD).fromhandle(WORLD.handle),
    "of one rank": MPI.COMM_SELF.Dup(),
    "null": MPI.COMM_NULL,
    "no communicator": MPI.Intracomm(),
}
KINDS = (MPI.Comm, MPI.Intracomm, MPI.Topocomm, MPI.Cartcomm, MPI.Distgraphcomm, MPI.Intercomm)
for name, comm in made.items():
    kind = type(comm)
    say(name, kind.__module__, kind.__qualname__, kind, [kind is one for one in KINDS])
    say(name, [isinstance(comm, one) for one in KINDS], [issubclass(kind, one) for one in KINDS])
say("kinds", [[issubclass(one, other) for other in KINDS] for one in KINDS])
# Compiled code asks by the bases alone.
say("bases", [MPI.Comm in type(comm).__mro__ for comm in made.values()])
# Compiled code makes communicators of mpi4py's own classes; they are of the kinds that programs know.
make = ctypes.pythonapi.PyCapsule_GetPointer
make.restype, make.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule, code = MPI.__pyx_capi__["PyMPIComm_New"], b"PyObject *(MPI_Comm)"
handle = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
foreign = ctypes.PYFUNCTYPE(ctypes.py_object, handle)(make(capsule, code))(WORLD.handle)
say("made by compiled code", [isinstance(foreign, one) for one in KINDS], foreign == WORLD)
bare = {"world": foreign, "grid": MPI.Comm.f2py(grid.py2f()), "neighbours": MPI.Comm.f2py(made["neighbours"].py2f())}
for name, comm in bare.items():
    found, other, named = type(comm), type(made[name]), {one: one.__name__ for one in KINDS}
    say("bare", name, found == other, other == found, found in [other], named[found], named[other])
    say("bare", name, found != other, [found == one for one in KINDS], len({found, other}))
say("parent", [isinstance(MPI.Comm.Get_parent(), one) for one in KINDS])

say("pickled classes", [pickle.loads(pickle.dumps(one)) is one for one in (*KINDS, type(WORLD))])
say("by name", pickle.dumps(type(WORLD), 0), pickle.dumps(WORLD, 0))
say("pickled", [pickle.loads(pickle.dumps(one)) is one for one in (WORLD, MPI.COMM_SELF, MPI.COMM_NULL)])


class Plain(MPI.Intracomm):
    pass


class Abstract(MPI.Intracomm, abc.ABC):
    pass


class Extended(type(WORLD)):
    def __new__(cls, comm, extra, /, *, more=3):
        self = super().__new__(cls, comm)
        self.extra = extra, more
        return self


class Initialised(type(WORLD)):
    def __new__(cls, comm, *extra):
        return super().__new__(cls, comm)

    def __init__(self, comm, *extra):
        self.extra = extra


class Grid(MPI.Cartcomm):
    def __init__(self, comm, extra=5):
        self.extra = extra


send, receive = np.ones(4), np.zeros(4)
for one in (Plain(WORLD), Abstract(WORLD), Extended(WORLD, 7, more=8), Initialised(WORLD, "a", 2), Grid(grid)):
    receive[:] = 0
    one.Allreduce(send, receive)
    kind = type(one)
    say(kind.__name__, isinstance(one, MPI.Intracomm), isinstance(WORLD, kind), issubclass(kind, type(WORLD)), receive)
    say(kind.__name__, getattr(one, "extra", None), one.allreduce(1), type(one.Split()) is MPI.Intracomm)
say("derived", type(Plain(WORLD).Dup()) is Plain, Grid(grid).Get_topo())

# Methods that are found in a class take any communicator of the kind.
for one in (WORLD, foreign, Plain(WORLD)):
    receive[:] = 0
    MPI.Intracomm.Allreduce(one, send, receive)
    parts = MPI.Intracomm.Split(one, 0, 0)
    say("unbound", receive, MPI.Intracomm.allreduce(one, 2), isinstance(parts, MPI.Intracomm))
large = pkl5.Intracomm(WORLD)
large.Allreduce(send, receive)
say("pkl5", receive, large.bcast("text"), large.allreduce(3))
if SIZE > 1:
    half = WORLD.Split(WORLD.rank % 2, 0)
    between = half.Create_intercomm(0, WORLD, 1 - WORLD.rank % 2)
    together = between.Merge()
    say("between groups", type(between) is MPI.Intercomm, type(together) is MPI.Intracomm, together.allreduce(1))
if WORLD.rank == 0:
    print("\n".join(answers))
