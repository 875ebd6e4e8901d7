"""Measured speed-ups of programs beside each other: the matrix, and its files."""
