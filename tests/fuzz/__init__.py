"""Fuzzing of every reader: ``python -m tests.fuzz --seconds 300``."""
