"""The mappers, functions ``mapper(graph, machine, seed)`` that return a `mapping.Mapping`.

``registry`` lists all by name. ``portfolio`` runs several and returns the best mapping. ``plain`` mappers need no
graph. ``cartesian`` maps a grid of ranks, which ``grids`` recognises, by blocks, ``strips`` or, to a torus, ``folds``.
``branches`` maps a tree of ranks. ``multilevel`` maps by partitioning the
graph with a partitioner of `mapping.partition`. ``refine`` swaps ranks to reduce the hop-bytes (``swaps`` computes the
savings; ``search`` and ``annealing`` choose the swaps). ``busiest`` relieves the busiest link.
"""

from .registry import MAPPERS, Mapper, mapper

__all__ = ["MAPPERS", "Mapper", "mapper"]
