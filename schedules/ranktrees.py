"""The trees of MPI libraries, which run in rank order from the root on: by the names of their shapes.

Turns are those in which libraries reduce: a parent hears the child with the last turn first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .trees import Tree, chain, knomial, linear, rotation

__all__ = ["SHAPES", "shaped"]

Integers = NDArray[np.int64]


def shaped(shape: str, size: int, root: int = 0) -> Tree:
    """The tree of a shape, its root at a rank; ``in_order`` has its root at the last rank, whatever is asked for.

    :param shape: a key of ``SHAPES``.
    :param size: number of ranks, p.
    :param root: the root's rank.
    :raises ValueError: for an unknown shape, or a root that is no rank.
    """
    if shape not in SHAPES:
        raise ValueError(f"expecting a shape of {', '.join(SHAPES)}, got {shape!r}")
    turned = rotation(size, root)
    return SHAPES[shape](size) if shape == "in_order" else SHAPES[shape](size).placed(turned)


def _binary(size: int) -> Tree:
    """Levels of 1, 2, 4, ... nodes; node n of a level with w nodes has the children n + w and n + 2 w."""
    node = np.arange(size)
    above = 1 << np.maximum(_bits(node + 1) - 2, 0)  # nodes of the level above
    first = node - above < 2 * above - 1
    parent = np.where(node == 0, -1, np.where(first, node - above, node - 2 * above))
    return Tree(parent, -node)


def _doubling(size: int) -> Tree:
    """The binomial tree by recursive doubling: in round k each of the first 2^k nodes serves the one 2^k behind it."""
    node = np.arange(size)
    return Tree(np.where(node == 0, -1, node - (1 << np.maximum(_bits(node) - 1, 0))), -node)


def _in_order(size: int) -> Tree:
    """The binary tree in which a node is the last of a range, and its children are the last of the range's two parts.

    Each sub-tree is a range of ranks, so operations need not commute; the root is the last rank.
    """
    parent, low, top = np.full(size, -1), np.zeros(1, dtype=np.int64), np.array([size - 1])
    while len(top):
        middle = low + (top - low + 1) // 2  # the lower part goes up to here, the upper one up to below the top
        below, above = middle > low, top > middle
        parent[middle[below] - 1], parent[top[above] - 1] = top[below], top[above]
        low = np.concatenate((low[below], middle[above]))
        top = np.concatenate((middle[below], top[above])) - 1
    return Tree(parent)


def _bits(number: Integers) -> Integers:
    """Bits of each number, 0 of none."""
    length: Integers = np.frexp(number.astype(np.float64))[1].astype(np.int64)
    return length


SHAPES: dict[str, Callable[[int], Tree]] = {
    "linear": linear,
    "chain": chain,
    "binary": _binary,
    "in_order": _in_order,
    "doubling": _doubling,
    "binomial": knomial,
    "quaternomial": lambda size: knomial(size, 4),
}
