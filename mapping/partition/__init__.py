"""Partitions of a graph into parts of given sizes: METIS, other partitioners if installed, and exact repair.

``parts`` defines partitioners and repairs their results, ``metis`` is the default partitioner, ``backends`` has KaHIP
and Scotch.
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
