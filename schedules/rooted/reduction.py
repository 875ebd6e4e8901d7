"""Reductions to one rank: along trees, along two trees at once, by chains, on circulant graphs, and by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..exchanges import Cube, checked_order, checked_root, doubling, halving, turned
from ..phases import Phases, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Integers, Tree, knomial, leaders, rotation
from .circulant import arrivals as on_circulant
from .doubletree import arrivals as on_two_trees
from .inorder import in_order

__all__ = [
    "climb",
    "gathered",
    "reduce_chain",
    "reduce_circulant",
    "reduce_double_tree",
    "reduce_halving",
    "reduce_knomial",
    "reduce_leaders",
    "reduce_through_zero",
    "reduce_tree",
]


def reduce_tree(tree: Tree, *, blocks: int = 1, algorithm: str = "tree") -> Schedule:
    """A reduction in which each rank sends the sum of its sub-tree to its parent.

    Messages: p - 1 of the whole vector; a parent makes one addition per child. Trees of ``inorder.in_order`` and the
    binomial tree with root 0 keep rank order.

    :param tree: the tree.
    :param blocks: number of blocks of the vector, b.
    :param algorithm: name of the algorithm.
    """
    phases = climb(tree, tree.others, _sums_at(tree.root, tree.size), blocks)
    return Schedule.from_phases("reduce", tree.size, algorithm, phases, root=tree.root, blocks=blocks)


def reduce_knomial(size: int, *, root: int = 0, radix: int = 2, ordered: bool = False, blocks: int = 1) -> Schedule:
    """A reduction along the k-nomial tree (for k = 2 Thakur, Rabenseifner, Gropp 2005, section 4.5).

    Messages: p - 1 of the whole vector, in ceil(log_k p) steps in which a parent receives up to k - 1 vectors at once;
    if ``ordered``, one after the other, in up to (k - 1) ceil(log_k p) steps. It is fast for short vectors.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param radix: k; a rank receives from up to k - 1 others at once.
    :param ordered: whether to keep rank order, for operations that do not commute; possible for any root without a
        further transfer. Otherwise ranks are in cyclic order from the root on, which requires a commutative operation.
    :param blocks: number of blocks of the vector, b.
    """
    tree = in_order((), size, root=root, radix=radix) if ordered else knomial(size, radix).placed(rotation(size, root))
    return reduce_tree(tree, blocks=blocks, algorithm=f"{radix}-nomial{', ordered' if ordered else ''}")


def reduce_through_zero(size: int, *, root: int = 0, blocks: int = 1) -> Schedule:
    """A reduction along the binomial tree to rank 0, which sends the result to the root; it keeps rank order.

    MPICH runs it for operations that do not commute. Messages: p - 1 of the whole vector, and one more if the root is
    not rank 0; ``reduce_knomial`` with ``ordered`` keeps rank order without this further message.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the vector, b.
    """
    tree = knomial(size)
    last = transfers(0, 0, checked_root(size, root), (SCRATCH, 0), (OUTPUT, 0), blocks)
    phases = sequence(climb(tree, tree.others, np.full(size, SCRATCH), blocks), last)
    return Schedule.from_phases("reduce", size, "binomial at 0", phases, root=root, blocks=blocks)


def reduce_leaders(
    size: int,
    clusters: Sequence[ArrayLike] = (),
    *,
    root: int = 0,
    radix: int = 2,
    ordered: bool = False,
    blocks: int = 1,
) -> Schedule:
    """A reduction of each cluster at its leader, innermost clusters first; the outermost leader is the root.

    Subramoni 2013, section 3, describes it for a gather.

    Messages: p - 1 of the whole vector; one leaves each cluster, the least possible. It is fast for short and medium
    vectors if links between clusters are slower than links inside.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :param root: the root's rank.
    :param radix: k; a rank receives from up to k - 1 others at once.
    :param ordered: whether to keep rank order, for operations that do not commute; each cluster must then be a range of
        ranks.
    :param blocks: number of blocks of the vector, b.
    """
    tree = (in_order if ordered else leaders)(clusters, size, root=root, radix=radix)
    return reduce_tree(tree, blocks=blocks, algorithm=f"leaders{', ordered' if ordered else ''}")


def reduce_chain(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """A reduction that pipelines blocks along a chain of all ranks that ends at the root.

    Messages: (p - 1) b, in p - 2 + b steps. Bytes: the vector once over each link of the chain, so in depth-first order
    once out of each cluster except the last. It is fast for long vectors, if blocks are many compared with p.

    It keeps rank order if ranks descend or ascend along the chain to the root: root 0 with ascending order, or root p -
    1 with descending order.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,); it is rotated to begin with the root.
    :param blocks: number of blocks of the vector, b.
    """
    ranks = turned(checked_order(size, order), checked_root(size, root))
    buffer, place = _sums_at(root, size), np.arange(size - 1, 0, -1)
    child, above = ranks[place][:, None], ranks[place - 1][:, None]
    block = np.arange(blocks)
    step = np.arange(size - 1)[:, None] + block
    # The first rank of the chain has nothing to add, so it sends its input.
    here = np.where(place[:, None] == size - 1, INPUT, buffer[child])
    chain = transfers(step, child, above, (here, block), (buffer[above], block), 1, REDUCE)
    inner = ranks[: max(size - 1, 1)]
    phases = sequence(local_moves(0, inner, (INPUT, 0), (buffer[inner], 0), blocks), chain)
    return Schedule.from_phases("reduce", size, "chain", phases, root=root, blocks=blocks)


def reduce_circulant(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """A reduction on a circulant graph, the reverse of the broadcast: ranks add a block in nearly every step.

    Träff, arXiv:2407.18004, see `schedules.rooted.circulant.arrivals`; for any p and b, and commutative operations.
    Messages: (p - 1) b of one block, in b - 1 + ceil(log2 p) steps, the least possible if a rank sends and receives one
    block per step. It is fast for medium vectors on fabrics that are not oversubscribed; for the order see
    `schedules.rooted.broadcast.circulant`.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,); it is rotated to begin with the root. By
        default ascending.
    :param blocks: number of blocks of the vector, b.
    """
    return _by_arrivals("circulant", on_circulant, size, root, order, blocks)


def reduce_double_tree(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """A reduction along two binary trees, the reverse of `schedules.rooted.broadcast.double_tree`.

    For any p and b, and commutative operations. Messages: (p - 1) b of one block, in at most b + 2 log2 p steps.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,); it is rotated to begin with the root. By
        default ascending.
    :param blocks: number of blocks of the vector, b.
    """
    return _by_arrivals("double_tree", on_two_trees, size, root, order, blocks)


def _by_arrivals(
    name: str,
    arrivals: Callable[[int, int], tuple[Integers, ...]],
    size: int,
    root: int,
    order: ArrayLike | None,
    blocks: int,
) -> Schedule:
    """A reduction that reverses the broadcast with the given arrivals: steps, senders, receivers and blocks."""
    if blocks < 1:
        raise ValueError(f"expecting at least one block, got {blocks}")
    order = turned(checked_order(size, order), checked_root(size, root))
    at, above, child, block = arrivals(size, blocks)
    adds = np.zeros(size, dtype=bool)
    adds[above] = adds[0] = True
    inner, buffer = np.flatnonzero(adds), _sums_at(0, size)
    here = np.where(adds[child], SCRATCH, INPUT)
    phases = sequence(
        local_moves(0, order[inner], (INPUT, 0), (buffer[inner], 0), blocks),
        transfers(at.max(initial=0) - at, order[child], order[above], (here, block), (buffer[above], block), 1, REDUCE),
    )
    return Schedule.from_phases("reduce", size, name, phases, root=root, blocks=blocks)


def reduce_halving(
    size: int,
    *,
    root: int = 0,
    order: ArrayLike | None = None,
    root_joins: bool = True,
    blocks: int | None = None,
) -> Schedule:
    """A reduction by a reduce-scatter with recursive halving, then a binomial gather at the root (Rabenseifner 2004).

    Neighbours in ``order`` exchange first, when messages are largest. If p is no power of two, and n is the largest
    power of two below it, p - n surplus ranks first send their vectors to a neighbour. Messages: n log2 n + n - 1 among
    the other n ranks, the corners of a hypercube, and p - n before. Bytes: twice (1 - 1/n) of the vector from each
    corner, where in a tree a parent receives up to log2 n vectors. It is fast for long vectors.

    It keeps rank order if ``order`` ascends.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param root_joins: whether a root that would be a surplus rank takes part in the halving instead of its neighbour.
        If not, as in MPICH, the rank at corner 0 sends this root its part after the reduce-scatter, in one more
        message, and the root takes its place in the gather.
    :param blocks: number of blocks of the vector, by default one per corner of the cube; with fewer, corners idle.
    """
    ranks, head = checked_order(size, order), checked_root(size, root)
    cube = Cube.over(ranks, reverse=True, head=head if root_joins else -1)
    corners = len(cube.heads)
    total = corners if blocks is None else blocks
    bounds, buffer = np.arange(corners + 1) * total // corners, _sums_at(root, size)
    first, heads = int(cube.heads[0]), cube.heads
    if root in cube.surplus:
        heads = np.append(root, heads[1:])
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (buffer, 0), total),
        cube.inward(buffer, 0, total, REDUCE),
        halving(cube.heads, bounds, buffer),
        transfers(0, first, root, (buffer[first], 0), (buffer[root], 0), bounds[1] * (root in cube.surplus)),
        gathered(heads, bounds, buffer, root),
    )
    return Schedule.from_phases("reduce", size, "halving and gather", phases, root=root, blocks=total)


def climb(tree: Tree, children: Integers, buffer: Integers, blocks: int, place: int = 0) -> Phases:
    """The phases in which some ranks of a tree send their sums to their parents, which add them in a buffer.

    :param tree: tree of all ranks.
    :param children: ranks that send, shape (n,); with each rank also all its own children.
    :param buffer: buffer in which each rank adds, shape (p,); ranks that receive nothing send their input.
    :param blocks: number of blocks of the vector.
    :param place: first block of the sums in the buffer.
    """
    above = tree.parent[children]
    leaf = np.zeros(tree.size, dtype=bool)
    leaf[children] = True
    leaf[above] = False
    inner = np.flatnonzero(~leaf)
    here = np.where(leaf, INPUT, buffer)[children], np.where(leaf, 0, place)[children]
    return sequence(
        local_moves(0, inner, (INPUT, 0), (buffer[inner], place), blocks),
        transfers(tree.up[children], children, above, here, (buffer[above], place), blocks, REDUCE),
    )


def _sums_at(root: int, size: int) -> Integers:
    """The buffer in which each rank adds: the output at the root, the scratch elsewhere."""
    return np.where(np.arange(size) == root, OUTPUT, SCRATCH)


def gathered(heads: Integers, bounds: Integers, buffer: Integers, root: int) -> Rows:
    """The messages of a recursive doubling on which the root's final data depend, so that it becomes a gather.

    :param heads: rank at each corner of a cube, including the root, shape (n,).
    :param bounds: first block of each corner's range, and the end, shape (n + 1,).
    :param buffer: working buffer of each rank, shape (p,).
    :param root: the root's rank.
    """
    at_root = np.flatnonzero(heads == root)
    corner = np.delete(np.arange(len(heads)), at_root)
    differing = corner ^ at_root
    # After a dimension, a corner's data reach through later dimensions only corners with the same earlier bits, so each
    # corner must send over the lowest dimension in which it differs from the root's corner.
    dimension = np.log2(differing & -differing).astype(np.int64)
    return doubling(heads, bounds, buffer).make(dimension, corner)
