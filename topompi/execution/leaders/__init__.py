"""Collectives over the leaders of a job's levels, by the MPI library's own collectives on sub-communicators."""
