"""Collectives with a root: the trees they run along, and the generators."""
