"""Create, use and free communicators again and again: memory and handles stay flat: ``leak.py CYCLES``.

Half of the cycles come first, so that what is kept on purpose (caches, pools of the MPI library) is there; the second
half must add nothing. Communicators that are never freed are seen in the number that a new one gets.
"""

import gc
import os
import sys
from typing import ClassVar

import numpy as np
from mpi4py import MPI

import topompi
from topompi.mpi.communicator.state import state_of
from topompi.mpi.dispatch import choosing
from topompi.mpi.dispatch.state import State
from topompi.mpi.selection.policy import Policy
from topompi.topology import TopologyInterface, load

os.environ["TOPOMPI_NATIVE_CALLS"] = "0"  # so that all of them have plans
Policy.asks = lambda policy, method: method == "Alltoall"
WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
SLACK = 3 << 17 if MPI.get_vendor()[0] == "Open MPI" else 1 << 20  # bytes: pools that still grow
VIEW = TopologyInterface.place([f"h000{rank * 5 // 2 % 8}" for rank in range(SIZE)], load("xgft:2,2,2;1,1,1").routes)


class Turns:
    """A selector that lets the algorithms take turns."""

    def __init__(self):
        self.names = {"Bcast": "leaders", "Alltoall": "pairwise", "Allreduce": "doubling"}

    trials: ClassVar = {}

    def known(self, key):
        """Nothing: rank 0 would be asked."""

    def choose(self, method, *_, **__):
        from topompi.mpi.selection.choice import Choice

        return Choice(self.names.get(method, "native"), "forced")

    request = choose


def grouped(comm, create):
    group = comm.Get_group()
    made = create(group)
    group.Free()
    return made


def completed(duplicate):
    made, request = duplicate
    request.Wait()
    return made


def parted(grid):
    made = grid.Sub([False, True])
    grid.Disconnect()
    return made


def merged(comm):
    half = comm.Split(RANK % 2, RANK)
    between = half.Create_intercomm(0, comm, 1 - RANK % 2)
    made = between.Merge(bool(RANK % 2))
    between.Free()
    half.Free()
    return topompi.Intracomm(made, topology=VIEW)


# Each kind of communicator that a call on another one makes.
CHILDREN = (
    lambda comm: comm.Split(RANK % 2, RANK),
    lambda comm: comm.Split(0, -RANK),
    lambda comm: comm.Split(RANK if RANK == 0 else MPI.UNDEFINED),
    lambda comm: parted(comm.Create_cart([1, SIZE])),
    lambda comm: comm.Split_type(MPI.COMM_TYPE_SHARED),
    lambda comm: comm.Dup(),
    lambda comm: comm.Dup_with_info(MPI.INFO_NULL),
    lambda comm: completed(comm.Idup()),
    lambda comm: comm.Clone(),
    lambda comm: grouped(comm, comm.Create),
    lambda comm: grouped(comm, comm.Create_group),
    lambda comm: comm.Create_cart([SIZE]),
    lambda comm: comm.Create_graph(list(range(1, SIZE + 1)), [(rank + 1) % SIZE for rank in range(SIZE)]),
    lambda comm: comm.Create_dist_graph_adjacent([(RANK - 1) % SIZE], [(RANK + 1) % SIZE]),
    merged,
)


def cycle(number):
    comm = topompi.Intracomm(WORLD.Dup(), topology=VIEW)
    use(comm)
    data = np.ones(SIZE)
    request = comm.Alltoall_init(data, np.zeros(SIZE))
    request.Start()  # in flight while others come and go
    child = CHILDREN[number % len(CHILDREN)](comm)
    if child != MPI.COMM_NULL:
        use(child, number)
        child.free()
    request.Wait()
    request.Free()
    if child != MPI.COMM_NULL:  # one that was wrapped
        child.Free()
    if number % 2:
        comm.free()
    comm.Free()


def use(comm, number=1):
    size = comm.Get_size()
    if number % 20:  # the communicator's own selector weighs all algorithms: that takes its time
        state_of(comm).selector = Turns()
        choosing.remember = lambda *call: None  # every call is chosen for anew
    data = np.zeros(size)
    comm.Bcast(data)
    comm.Alltoall(data, data.copy())
    comm.Allreduce(MPI.IN_PLACE, data)
    if not number % 20 or size == 1:  # the MPI library's own requests: of these Open MPI 5.0 keeps some memory
        return
    request = comm.Alltoall_init(data, data.copy())
    request.Start()
    request.Wait()
    request.Free()


def resident():
    """Bytes of memory in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def living():
    gc.collect()
    return sum(isinstance(one, State | MPI.Comm | MPI.Request | MPI.Group | MPI.Datatype) for one in gc.get_objects())


def context():
    """The number, the lowest that is free, that the MPI library gives a new communicator as Fortran knows it."""
    comm = MPI.Intracomm(WORLD).Dup()
    number = comm.py2f() & 0xFFFFFF  # without what MPICH says of the kind of handle
    comm.Free()
    return number


def main():
    cycles = int(sys.argv[1])
    seen = []
    for number in range(cycles):
        cycle(number)
        if number in (cycles // 2, cycles - 1):
            seen.append((resident(), living(), context()))
    more = [after - before for before, after in zip(*seen, strict=True)]
    grown = WORLD.allgather(more)
    most = [max(row[place] for row in grown) for place in range(3)]
    if RANK == 0:
        print(f"{cycles} cycles on {SIZE} ranks: {most[0] / 1024:.0f} KiB, {most[1]} objects, {most[2]} handles more")
    sys.exit(most[0] > SLACK + 50 * cycles or most[1] > 20 or most[2] > 0)


if __name__ == "__main__":
    main()
