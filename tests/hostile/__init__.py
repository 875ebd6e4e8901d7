"""Misuse of collectives, compared with what the MPI library makes of it."""
