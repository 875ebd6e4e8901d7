"""Micro-benchmarks of MPI communicators, with the measurements and tables of the OSU Micro-Benchmarks (OSU, OMB).

A "side" is one of the compared implementations: topompi's communicator or mpi4py's own (native); in simulations, a
schedule or another MPI library.
"""
