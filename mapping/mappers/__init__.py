"""The mappers: each is called as ``mapper(graph, machine, seed)`` and gives a `mapping.Mapping`.

Where things are: ``registry`` has all of them by name, ``portfolio`` the best of several, ``plain`` those that need no
graph, ``cartesian`` blocks of grids (found by ``grids``), ``multilevel`` single step, scheme 1 and scheme 2 on any
`mapping.partition`, ``refine`` swaps on the true objective (``swaps`` prices them; ``search`` and ``annealing`` choose
them), ``busiest`` the relief of the busiest link, ``sharedmap`` a mapper of others to compare with.
"""

from .registry import MAPPERS, Mapper, mapper

__all__ = ["MAPPERS", "Mapper", "mapper"]
