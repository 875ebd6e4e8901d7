"""Which job had how many nodes on which leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import JobsError
from ..outcome import Outcome

__all__ = ["Incidence", "incidence_of"]

Indices = NDArray[np.int64]


class Incidence(NamedTuple):
    """One row for each job and each group (leaf or pod) that it used, sorted by job; ``nodes`` says how many."""

    job: Indices
    group: Indices
    nodes: Indices


def incidence_of(outcome: Outcome, group: NDArray[np.integer], *, held: bool = False) -> Incidence:
    """The rows for one group a node; cost: a sort of all nodes of all jobs.

    :param outcome: with nodes.
    :param group: of each node, such as its leaf, shape (nodes,).
    :param held: count nodes that a job held but did not use, too.
    :raises JobsError: where nodes were only counted.
    """
    if not outcome.has_nodes and len(outcome.ran):
        raise JobsError("metrics: expecting an allocator that names nodes, got one that counts them")
    each = np.diff(outcome.offset)
    job = np.repeat(np.arange(len(each)), each)
    nodes = outcome.nodes
    if not held:
        used = np.arange(len(nodes)) - outcome.offset[job] < outcome.workload.nodes[job]
        job, nodes = job[used], nodes[used]
    groups = int(group.max()) + 1
    key, count = np.unique(job * groups + group[nodes], return_counts=True)
    return Incidence(key // groups, key % groups, count)
