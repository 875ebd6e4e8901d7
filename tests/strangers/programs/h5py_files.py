"""h5py's parallel files, opened with communicators from mpi4py, written together and read back by each rank."""

import h5py
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
parity = world.rank % 2
half = world.Split(parity, world.rank)

for name, comm in (("world.h5", world), (f"half-{parity}.h5", half), ("copy.h5", world.Dup())):
    with h5py.File(name, "w", driver="mpio", comm=comm) as file:
        table = file.create_dataset("table", (comm.size, 1000), dtype="i8")
        with table.collective:
            table[comm.rank] = np.arange(1000) + 10_000 * comm.rank
        file.create_dataset("own", (comm.size,), dtype="i4")[comm.rank] = world.rank
        file.attrs["ranks"] = comm.size
    comm.Barrier()
    with h5py.File(name, "r", driver="mpio", comm=comm) as file:
        whole = np.empty((comm.size, 1000), "i8")
        comm.Allgather(file["table"][comm.rank], whole)
        right = np.array_equal(whole, np.arange(1000) + 10_000 * np.arange(comm.size)[:, None])
        told = comm.gather((right, file["own"][:].tolist(), int(file.attrs["ranks"]), file.atomic))
    if comm.rank == 0:
        print(name, told)
