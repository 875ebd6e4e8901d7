"""Modes of execution (compact, spread, striped, exclusive): cores of each node, and files for launchers."""
