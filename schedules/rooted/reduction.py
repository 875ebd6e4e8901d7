"""Reductions to one rank: trees, two at once, chain, circulant blocks, halving and gathering."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_order, checked_root, doubling, halving, turned
from ..phases import Phases, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves, transfers
from ..trees import Tree, knomial, leaders, rotation
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

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def reduce_tree(tree: Tree, *, blocks: int = 1, algorithm: str = "tree") -> Schedule:
    """Each rank sends the sum of its sub-tree to its parent.

    Messages: p - 1, each of the whole vector; each parent adds up as many as it has children. Rank order is kept by
    trees of ``inorder.in_order``, and by the binomial tree of root 0.

    :param tree: the tree.
    :param blocks: blocks of the vector, b.
    :param algorithm: name of the algorithm.
    """
    phases = climb(tree, tree.others, _sums_at(tree.root, tree.size), blocks)
    return Schedule.from_phases("reduce", tree.size, algorithm, phases, root=tree.root, blocks=blocks)


def reduce_knomial(size: int, *, root: int = 0, radix: int = 2, ordered: bool = False, blocks: int = 1) -> Schedule:
    """The k-nomial tree (Thakur, Rabenseifner, Gropp 2005, section 4.5, for k = 2) backwards.

    Messages: p - 1 of the whole vector, in ceil(log_k p) steps, a parent receiving k - 1 at once; ``ordered``: one
    after the other, in up to (k - 1) ceil(log_k p) steps. It wins for short vectors.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param radix: k: a rank serves up to k - 1 others at once.
    :param ordered: keep rank order, for operations that do not commute; for any root, without an extra transfer.
        Otherwise the tree begins at the root and goes round, and only commutative operations are right.
    :param blocks: blocks of the vector, b.
    """
    tree = in_order((), size, root=root, radix=radix) if ordered else knomial(size, radix).placed(rotation(size, root))
    return reduce_tree(tree, blocks=blocks, algorithm=f"{radix}-nomial{', ordered' if ordered else ''}")


def reduce_through_zero(size: int, *, root: int = 0, blocks: int = 1) -> Schedule:
    """The binomial tree of rank 0, which hands the result to the root: rank order without a tree for each root.

    As MPICH does for operations that do not commute. Messages: p - 1 of the whole vector, and one more where the root
    is not rank 0; ``reduce_knomial`` keeps rank order without it.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of the vector, b.
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
    """Each cluster reduces at its leader, innermost clusters first (Subramoni 2013, section 3, for a reduction).

    Messages: p - 1 of the whole vector; one leaves each cluster, which no schedule can undercut. It wins wherever
    links between clusters are slower than those inside, for short and medium vectors.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers.
    :param root: the root's rank.
    :param radix: k: a rank serves up to k - 1 others at once.
    :param ordered: keep rank order, for operations that do not commute; then each cluster must be a range of ranks.
    :param blocks: blocks of the vector, b.
    """
    tree = (in_order if ordered else leaders)(clusters, size, root=root, radix=radix)
    return reduce_tree(tree, blocks=blocks, algorithm=f"leaders{', ordered' if ordered else ''}")


def reduce_chain(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """Blocks follow one another along a chain that ends at the root: rings in tree order, for one rank.

    Messages: (p - 1) b, in p - 2 + b steps; bytes: the vector once over each link of the chain, so in depth-first
    order once out of each cluster but the last. It wins for long vectors, with blocks of a size that hides p.

    Keeps rank order where the chain from its far end to the root descends or ascends: root 0 in ascending order,
    or root p - 1 in descending order.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), gone round so that the root comes first.
    :param blocks: blocks of the vector, b.
    """
    ranks = turned(checked_order(size, order), checked_root(size, root))
    buffer, place = _sums_at(root, size), np.arange(size - 1, 0, -1)
    child, above = ranks[place][:, None], ranks[place - 1][:, None]
    block = np.arange(blocks)
    step = np.arange(size - 1)[:, None] + block
    # The far end has nothing to add up, and sends its input.
    here = np.where(place[:, None] == size - 1, INPUT, buffer[child])
    chain = transfers(step, child, above, (here, block), (buffer[above], block), 1, REDUCE)
    inner = ranks[: max(size - 1, 1)]
    phases = sequence(local_moves(0, inner, (INPUT, 0), (buffer[inner], 0), blocks), chain)
    return Schedule.from_phases("reduce", size, "chain", phases, root=root, blocks=blocks)


def reduce_circulant(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """The broadcast on a circulant graph backwards: each rank adds up a block of others in nearly every round.

    Träff, arXiv:2407.18004, see `schedules.rooted.circulant.arrivals`; for any p and b, and operations that commute.
    Messages: (p - 1) b of m / b bytes for a vector of m, in b - 1 + ceil(log2 p) steps, the least possible where a rank
    sends and receives one block a step. It wins for medium vectors on fabrics that are not oversubscribed; see
    `schedules.rooted.broadcast.circulant` for the order.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), gone round so that the root comes first; by default ascending.
    :param blocks: blocks of the vector, b.
    """
    return _by_arrivals("circulant", on_circulant, size, root, order, blocks)


def reduce_double_tree(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """The broadcast over two binary trees backwards; see `schedules.rooted.broadcast.double_tree`.

    For any p and b, and operations that commute. Messages: (p - 1) b of m / b bytes for a vector of m, in at most
    b + 2 log2 p steps.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), gone round so that the root comes first; by default ascending.
    :param blocks: blocks of the vector, b.
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
    """The reduction that is a broadcast with these steps, senders, receivers and blocks backwards."""
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
    """Reduce-scatter by recursive halving, then a binomial gather at the root (Rabenseifner 2004).

    Neighbours in ``order`` exchange first, and so the most; surplus ranks, where p is no power of two, first send all
    to a neighbour. Messages: n log2 n + n - 1 for the n ranks of the cube; bytes: twice (1 - 1/n) of the vector from
    each, against log2 n vectors into each parent of a tree. It wins for long vectors.

    Keeps rank order where ``order`` ascends.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), by default ascending.
    :param root_joins: whether a root never hands its vector to its neighbour. If it may, as in MPICH, the head of
        corner 0 sends it its part after the reduce-scatter, and the root gathers in its place: one more message.
    :param blocks: blocks of the vector, by default one for each corner of the cube; fewer leave corners idle.
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
    """Some ranks of a tree send their sums to their parents, which keep theirs in a buffer.

    :param tree: of all ranks.
    :param children: the ranks that send, shape (n,); all of their own children among them.
    :param buffer: where each rank adds up, shape (p,); ranks without children among ``children`` send their input.
    :param blocks: blocks of the vector.
    :param place: block of the buffer at which sums begin.
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
    """Where each rank adds up: the root in its output, the others in their scratch."""
    return np.where(np.arange(size) == root, OUTPUT, SCRATCH)


def gathered(heads: Integers, bounds: Integers, buffer: Integers, root: int) -> Rows:
    """The messages of a recursive doubling on whose content the root depends.

    :param heads: rank at each corner of a cube, the root among them, shape (n,).
    :param bounds: first block of each corner's range and the end, shape (n + 1,).
    :param buffer: working buffer of each rank, shape (p,).
    :param root: the root's rank.
    """
    at_root = np.flatnonzero(heads == root)
    corner = np.delete(np.arange(len(heads)), at_root)
    differing = corner ^ at_root
    # What a corner has after a dimension reaches, through the later ones, only corners with the same earlier bits:
    # so each corner sends over the lowest dimension in which it differs from the root's.
    dimension = np.log2(differing & -differing).astype(np.int64)
    return doubling(heads, bounds, buffer).make(dimension, corner)
