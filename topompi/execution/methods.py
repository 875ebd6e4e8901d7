"""The buffer collectives that have something to choose, by mpi4py's names."""

__all__ = ["METHODS", "SIZED_BY"]

# Method -> the collective whose schedules it can run, a key of ``schedules.registry.ALGORITHMS``.
METHODS = {
    "Bcast": "bcast",
    "Gather": "gather",
    "Gatherv": "gather",
    "Scatter": "scatter",
    "Scatterv": "scatter",
    "Allgather": "allgather",
    "Allgatherv": "allgather",
    "Reduce": "reduce",
    "Allreduce": "allreduce",
    "Reduce_scatter": "reduce_scatter",
    "Reduce_scatter_block": "reduce_scatter",
    "Alltoall": "alltoall",
    "Alltoallv": "alltoall",
    "Alltoallw": "alltoall",
}

# Place among the arguments of the message whose bytes are the size of the call, as ``sizes.nbytes`` has it. Calls are
# looked up by the ``nbytes`` of whatever has it: of an array, a memoryview or an ``MPI.buffer`` they are its message's.
SIZED_BY = {
    "Bcast": 0,
    "Gather": 0,
    "Scatter": 1,
    "Allgather": 1,
    "Alltoall": 1,
    "Reduce": 0,
    "Allreduce": 1,
    "Reduce_scatter": 0,
    "Reduce_scatter_block": 0,
}
