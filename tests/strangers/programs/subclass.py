"""A class of the program's own, derived from that of the world, with arguments of its own."""

from mpi4py import MPI


class Mine(type(MPI.COMM_WORLD)):
    """A communicator that remembers one thing more."""

    def __new__(cls, comm, extra):
        self = super().__new__(cls, comm)
        self.extra = extra
        return self

    def __init__(self, comm, extra):
        pass


mine = Mine(MPI.COMM_WORLD, 7)
print(mine.extra, type(mine).__name__, mine == MPI.COMM_WORLD, mine.allreduce(1), isinstance(mine, MPI.Intracomm))
