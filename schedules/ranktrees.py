"""The trees of MPI libraries, which follow rank order from the root on, by the names of their shapes.

The turns of a parent's children are chosen for reductions: a parent receives first from the child with the last turn,
and so in the order in which libraries reduce.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .trees import Tree, chain, knomial, linear, rotation

__all__ = ["SHAPES", "shaped"]

Integers = NDArray[np.int64]


def shaped(shape: str, size: int, root: int = 0) -> Tree:
    """Make the tree of a shape with a given rank as root; the root of ``in_order`` is always the last rank.

    :param shape: a key of ``SHAPES``.
    :param size: number of ranks, p.
    :param root: the root's rank; ``in_order`` ignores it.
    :raises ValueError: if the shape is unknown, or the root is no rank.
    """
    if shape not in SHAPES:
        raise ValueError(f"expecting a shape of {', '.join(SHAPES)}, got {shape!r}")
    turned = rotation(size, root)
    return SHAPES[shape](size) if shape == "in_order" else SHAPES[shape](size).placed(turned)


def _binary(size: int) -> Tree:
    """The binary tree with levels of 1, 2, 4, ... nodes; in a level of w, node n has the children n + w and n + 2w."""
    node = np.arange(size)
    above = 1 << np.maximum(_bits(node + 1) - 2, 0)  # nodes of the level above
    first = node - above < 2 * above - 1
    parent = np.where(node == 0, -1, np.where(first, node - above, node - 2 * above))
    return Tree(parent, -node)


def _doubling(size: int) -> Tree:
    """The binomial tree by recursive doubling: in round k each of the first 2^k nodes serves the node 2^k after it."""
    node = np.arange(size)
    return Tree(np.where(node == 0, -1, node - (1 << np.maximum(_bits(node) - 1, 0))), -node)


def _in_order(size: int) -> Tree:
    """The binary tree in which the last rank of a range is the parent of the last ranks of two halves of the others.

    Each sub-tree is a range of ranks, so the operation of a reduction need not commute. The root is the last rank.
    """
    parent, low, top = np.full(size, -1), np.zeros(1, dtype=np.int64), np.array([size - 1])
    while len(top):
        middle = low + (top - low + 1) // 2  # the lower half is low..middle - 1, the upper half middle..top - 1
        below, above = middle > low, top > middle
        parent[middle[below] - 1], parent[top[above] - 1] = top[below], top[above]
        low = np.concatenate((low[below], middle[above]))
        top = np.concatenate((middle[below], top[above])) - 1
    return Tree(parent)


def _bits(number: Integers) -> Integers:
    """The number of binary digits of each number; 0 for 0."""
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
