"""Collectives in which every rank ends with data from all: allgather, reduce-scatter, allreduce, scan."""
