"""Micro-benchmarks of MPI communicators in the manner of the OSU Micro-Benchmarks."""
