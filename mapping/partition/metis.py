"""METIS, the default partitioner, by the package pymetis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graph import Undirected
from .parts import PartitionError, whole_weights

__all__ = ["Metis"]

Integers = NDArray[np.int64]


class Metis:
    """METIS by recursive bisection (Karypis, Kumar 1998), which on small graphs cuts less than its k-way method.

    :param cuts: number of bisections tried at each step, of which the best counts.
    :param imbalance: allowed imbalance of parts in thousandths; 1 leaves little to repair.
    :param recursive: whether to bisect recursively; False for the k-way method.
    """

    def __init__(self, cuts: int = 4, imbalance: int = 1, recursive: bool = True) -> None:
        self.cuts, self.imbalance, self.recursive = cuts, imbalance, recursive

    def __call__(self, graph: Undirected, sizes: Integers, seed: int) -> Integers:
        """Partition a graph; return the part of each vertex, shape (n,).

        In a graph without edges, parts are ranges of vertices.

        :raises PartitionError: if METIS gives up. It catches SIGTERM and SIGABRT while it works and reports them as an
            ordinary error; this error must not be ignored, or a job could not be ended.
        """
        if not len(graph.targets):
            return np.repeat(np.arange(len(sizes)), sizes)
        import pymetis  # imported late because few programs partition

        shares = None if sizes.min() == sizes.max() else (sizes / sizes.sum()).tolist()
        # From 2 on, because METIS treats seeds 0 and 1 alike, and different seeds shall give different partitions.
        options = pymetis.Options(seed=seed % 2**30 + 2, ufactor=self.imbalance, ncuts=self.cuts)
        try:
            found = pymetis.part_graph(
                len(sizes),
                pymetis.CSRAdjacency(graph.offsets.astype(np.int32), graph.targets.astype(np.int32)),
                eweights=whole_weights(graph).astype(np.int32),
                tpwgts=shares,
                recursive=self.recursive,
                options=options,
            )
        except RuntimeError as error:
            raise PartitionError("partition: METIS was ended by a signal (SIGTERM, SIGABRT) or lacks memory") from error
        return np.asarray(found[1], dtype=np.int64)
