"""The questions that packages ask of communicators to tell which kind they are."""

import pickle

from mpi4py import MPI

world = MPI.COMM_WORLD
half = world.Split(world.rank % 2, world.rank)
grid = world.Create_cart([world.size])
for name, comm, kind in (("world", world, MPI.Intracomm), ("half", half, MPI.Intracomm), ("grid", grid, MPI.Cartcomm)):
    told = type(comm) is kind, type(comm).__module__, type(comm).__qualname__, isinstance(comm, kind)
    if world.rank == 0:
        print(name, *told, issubclass(type(comm), MPI.Comm), pickle.loads(pickle.dumps(type(comm))) is type(comm))
