"""The mappers, functions ``mapper(graph, machine, seed)`` that return a `mapping.Mapping`.

``registry`` lists all by name. ``portfolio`` finds the best of several. ``plain`` mappers need no graph. ``cartesian``
maps blocks of grids, which ``grids`` finds. ``multilevel`` has single step, scheme 1 and scheme 2 on any
`mapping.partition`. ``refine`` swaps ranks on the true objective (``swaps`` computes the savings; ``search`` and
``annealing`` choose the swaps). ``busiest`` relieves the busiest link. ``sharedmap`` is a published mapper to compare
with.
"""

from .registry import MAPPERS, Mapper, mapper

__all__ = ["MAPPERS", "Mapper", "mapper"]
