"""Broadcasts and reductions in rank order that MPI libraries run and that are not among topompi's own algorithms.

Further algorithms of libraries are in `broadcast` and `reduction`.
"""

from __future__ import annotations

import numpy as np

from ..exchanges import checked_root
from ..phases import Phases, sequence
from ..ranktrees import shaped
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Integers, Tree, knomial, rotation
from .broadcast import along
from .reduction import climb, reduce_tree

__all__ = [
    "bcast_scatter_doubling",
    "bcast_shaped",
    "bcast_split_binary",
    "handed_on",
    "reduce_shaped",
]


def bcast_shaped(size: int, *, root: int = 0, blocks: int = 1, shape: str = "binary") -> Schedule:
    """A broadcast along a tree of ``ranktrees.SHAPES``, in which a rank sends to all its children at once.

    Messages: p - 1 of all blocks, in as many steps as the tree is deep.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, which travel together.
    :param shape: shape of the tree; not ``in_order``, whose root is fixed.
    :raises ValueError: if the shape is unknown, or has another root.
    """
    tree = shaped(shape, size, root)
    if tree.root != checked_root(size, root):
        raise ValueError(f"expecting a shape that has its root at rank {root}, got {shape!r}")
    return along(Tree(tree.parent, np.zeros(size)), f"{shape} tree", blocks=blocks)


def reduce_shaped(size: int, *, root: int = 0, blocks: int = 1, shape: str = "binary") -> Schedule:
    """A reduction along a tree of ``ranktrees.SHAPES``, in which a rank receives from one child after the other.

    Messages: p - 1 of the whole vector, and one more if the tree is ``in_order`` and its root is not the requested one.
    This tree keeps rank order for any root.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the vector, which travel together.
    :param shape: shape of the tree.
    """
    tree = shaped(shape, size, checked_root(size, root))
    if tree.root == root:
        return reduce_tree(tree, blocks=blocks, algorithm=f"{shape} tree")
    phases = sequence(
        climb(tree, tree.others, np.full(size, SCRATCH), blocks),
        transfers(0, tree.root, root, (SCRATCH, 0), (OUTPUT, 0), blocks),
    )
    return Schedule.from_phases("reduce", size, f"{shape} tree", phases, root=root, blocks=blocks)


def bcast_split_binary(size: int, *, root: int = 0, blocks: int = 2) -> Schedule:
    """A broadcast of one half of the message to each of the two sub-trees of the root of a binary tree.

    Ranks of the two sub-trees then exchange the halves in pairs.

    Pjesivac-Grbovic and others 2007, "Performance analysis of MPI collective operations", split binary. Messages:
    2 (p - 1) of half of the message, in about log2 p + 1 steps.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the message; if it is odd, the left half is the larger one.
    """
    left = blocks - blocks // 2
    begin, count = np.array([left, 0]), np.array([blocks - left, left])  # right half for even nodes, left half for odd
    tree = shaped("binary", size)
    child = tree.others
    source = np.where(tree.parent[child] == 0, INPUT, OUTPUT)
    place = begin[child % 2]
    down = transfers(
        tree.depth[child] - 1, tree.parent[child], child, (source, place), (OUTPUT, place), count[child % 2]
    )
    # Nodes 1 and 2, 3 and 4, ... exchange; if p is even, the last node has no partner but the root.
    swap = np.arange(1, size - (size % 2 == 0))
    other = np.where(swap % 2, swap + 1, swap - 1)
    across = transfers(0, swap, other, (OUTPUT, begin[swap % 2]), (OUTPUT, begin[swap % 2]), count[swap % 2])
    if size > 1 and size % 2 == 0:
        across = np.concatenate((across, transfers(0, 0, size - 1, (INPUT, left), (OUTPUT, left), blocks - left)))
    return _bcast(size, "split binary tree", root, blocks, down, across)


def bcast_scatter_doubling(size: int, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """A broadcast by a binomial scatter, then an allgather by recursive doubling, neighbours first.

    Van de Geijn's broadcast with the allgather of Thakur, Rabenseifner, Gropp 2005, section 4.2. If p is no power of
    two, nodes without a partner receive the missing blocks from nodes of their own sub-tree. Bytes: each rank sends
    about twice the message.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, by default p; node i owns blocks i c to (i + 1) c, c = ceil(b / p).
    """
    blocks = size if blocks is None else blocks
    cut = np.minimum(np.arange(size + 1) * -(-blocks // size), blocks)
    tree = knomial(size)
    child = tree.others
    source = np.where(tree.parent[child] == 0, INPUT, OUTPUT)
    count = cut[child + tree.sizes[child]] - cut[child]
    scatter = transfers(tree.down[child], tree.parent[child], child, (source, cut[child]), (OUTPUT, cut[child]), count)
    parts: list[Rows] = [scatter]
    for step in range((size - 1).bit_length()):
        parts += _doubled(size, 1 << step, cut)
    return _bcast(size, "scatter, doubling", root, blocks, *parts)


def _doubled(size: int, mask: int, cut: Integers) -> list[Rows]:
    """The rows of one exchange of a recursive doubling, and of the forwarding that follows it.

    Nodes exchange the blocks of their sub-trees of ``mask`` nodes. Nodes whose partner does not exist then receive
    blocks from nodes of their own sub-tree.

    :param size: number of nodes, p.
    :param mask: number of nodes of a sub-tree, a power of two.
    :param cut: first block of each node, and the end, shape (p + 1,).
    """
    node = np.arange(size)
    met = node ^ mask
    node, met = node[met < size], met[met < size]
    low = node // mask * mask
    place, count = cut[low], cut[np.minimum(low + mask, size)] - cut[low]
    return [transfers(0, node, met, (OUTPUT, place), (OUTPUT, place), count)] + [
        transfers(0, here, there, (OUTPUT, cut[begin]), (OUTPUT, cut[begin]), cut[-1] - cut[begin])
        for here, there, begin in handed_on(size, mask)
    ]


def handed_on(size: int, mask: int) -> list[tuple[Integers, Integers, int]]:
    """The steps that forward blocks to nodes without a partner after an exchange with an incomplete sub-tree.

    Each step has its senders, its receivers, and the first block that they forward, from which on all are sent.

    :param size: number of nodes, p.
    :param mask: number of nodes of a complete sub-tree, a power of two.
    """
    top = (size - 1) // (2 * mask) * 2 * mask
    begin = top + mask
    some = size - begin  # number of nodes of the incomplete sub-tree, and of their partners in the complete one
    if not 0 < some < mask:
        return []
    steps = []
    half = mask >> 1
    while half:
        node = np.arange(top, begin)
        low = node // (2 * half) * (2 * half)
        sends = (node & half == 0) & (node < low + some) & (node + half >= low + some)
        if sends.any():
            steps.append((node[sends], node[sends] + half, begin))
        half >>= 1
    return steps


def _bcast(size: int, algorithm: str, root: int, blocks: int, *parts: Rows) -> Schedule:
    """A broadcast from rows between nodes; node i is the i-th rank, counted cyclically from the root on."""
    ranks = rotation(size, checked_root(size, root))
    own = local_moves(0, 0, (INPUT, 0), (OUTPUT, 0), blocks)
    tables = [own, *parts]
    for table in tables:
        table[:, 1:3] = ranks[table[:, 1:3]]
    phases: Phases = sequence(*tables)
    return Schedule.from_phases("bcast", size, algorithm, phases, root=root, blocks=blocks)
