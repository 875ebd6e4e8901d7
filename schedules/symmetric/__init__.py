"""Generators of collectives without a root: allgather, reduce-scatter, allreduce, scan and barrier."""
