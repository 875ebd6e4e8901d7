"""The selection of an algorithm for a call, by rules file, measured trial or cost model; the same on all ranks.

``advisor``, which only rank 0 runs, asks ``rules``, ``memory`` (results of earlier trials) and the cost model of
``topompi.mpi.prediction``, in this order; ``trial`` compares algorithms by timing. These need no MPI. ``selector``
belongs to one communicator, and sends rank 0's choices to all ranks.
"""
