"""Splitting a graph into parts of given sizes: METIS, other partitioners where installed, parts made exact.

Where things are: ``parts`` says what a partitioner is and repairs what it gives, ``metis`` is the default one,
``backends`` has KaHIP and Scotch.
"""

from .backends import available, partitioner
from .metis import Metis
from .parts import Partitioner, PartitionError, cut, partition, repair, subgraph

__all__ = [
    "Metis",
    "PartitionError",
    "Partitioner",
    "available",
    "cut",
    "partition",
    "partitioner",
    "repair",
    "subgraph",
]
