"""Generators of fat trees, with full or reduced bandwidth towards the root."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...errors import FabricError
from ...network import MAX_HOPS
from ..fabric import Fabric
from .blueprint import DEFAULT_RATE, Blueprint, Cables, Integers, cables, check_at_least, check_size

__all__ = ["draw_fat_tree", "fat_tree", "k_ary_n_tree"]


def fat_tree(
    children: Sequence[int],
    parents: Sequence[int],
    cables: Sequence[int] | None = None,
    hosts: int | None = None,
    rate: float = DEFAULT_RATE,
    name: str | None = None,
) -> Fabric:
    """Make the parallel-ports generalised fat tree PGFT(h; m1..mh; w1..wh; p1..ph), with h levels of switches.

    Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees", 2010; with
    one cable to each parent (p = 1) it is the XGFT of Öhring et al., "On generalized fat trees", 1995. A node of level
    l has m(l) children, and w(l+1) parents with p(l+1) cables to each; hosts are level 0. Small w and p reduce the
    bandwidth upwards; for example, a leaf with m = 20 hosts and w p = 16 cables upwards is 5:4 over-subscribed.

    Switches are named ``L<level>/<subtree>.<number within it>``. Down ports come first, in turns over the children, so
    that cable k to child a is port 1 + a + k m(l); the up ports follow, in turns over the parents.

    :param children: m, number of children of a node of each level 1..h.
    :param parents: w, number of parents of a node of each level 0..h-1.
    :param cables: p, number of cables from a node of each level 0..h-1 to each parent; 1 by default.
    :param hosts: number of hosts to keep, the first ones, with the switches above them; all by default.
    :param rate: bandwidth of every link in bytes/s.
    :param name: name of the fabric; by default the formula.
    :raises FabricError: if the lists differ in length, or a host would have several adapters (w1 p1 > 1).
    Cost: a few array operations per level.
    """
    cables = [1] * len(children) if cables is None else cables
    drawn = draw_fat_tree(children, parents, cables, hosts, rate)
    return drawn.build(name or _formula(children, parents, cables, drawn.num_hosts))


def k_ary_n_tree(
    k: int, n: int, hosts: int | None = None, rate: float = DEFAULT_RATE, name: str | None = None
) -> Fabric:
    """Make the k-ary n-tree: k^n hosts under n levels of k^(n-1) switches each.

    The source is Petrini and Vanneschi, "k-ary n-trees: high performance networks for massively parallel
    architectures", 1997. The tree is XGFT(n; k..k; 1, k..k), a `fat_tree`, which also raises the errors.

    :param k: number of children, and of parents, of a switch.
    :param n: number of levels of switches.
    :param hosts: number of hosts to keep, the first ones; all by default.
    :param rate: bandwidth of every link in bytes/s.
    :param name: name of the fabric; by default ``k-ary n-tree``.
    """
    check_at_least(1, "an arity k and a height n", [k, n])
    _check_height(n)
    return fat_tree([k] * n, [1] + [k] * (n - 1), None, hosts, rate, name or f"{k}-ary {n}-tree")


def draw_fat_tree(
    children: Sequence[int],
    parents: Sequence[int],
    cables: Sequence[int],
    hosts: int | None = None,
    rate: float = DEFAULT_RATE,
    label: str = "L",
) -> Blueprint:
    """Make the blueprint (the vertices without ids, and the cables) of a :func:`fat_tree`.

    :param children: number of children of a node of each level 1..h.
    :param parents: number of parents of a node of each level 0..h-1.
    :param cables: number of cables from a node of each level 0..h-1 to each parent.
    :param hosts: number of hosts to keep, the first ones; all by default.
    :param rate: bandwidth of every link in bytes/s.
    :param label: prefix of every switch's name.
    """
    hosts = _check(children, parents, cables, hosts)
    # The node (l; a_h..a_l+1; b_l..b_1) of the papers is number A W + B of its level. A, the digits a_h..a_l+1, is the
    # number of the sub-tree (host // M); B, the digits b_l..b_1, is the number among the sub-tree's W nodes.
    below = [prod(children[:level]) for level in range(len(children) + 1)]  # M: hosts under a node of each level
    width = [prod(parents[:level]) for level in range(len(children) + 1)]  # W: nodes of each level in a sub-tree
    # A is the more significant part of the number; therefore the first hosts need only the first nodes of each level.
    kept = [-(-hosts // m) * w for m, w in zip(below, width, strict=True)]
    check_size(hosts, sum(kept[1:]), *(k * w * p for k, w, p in zip(kept, parents, cables, strict=False)))
    start = np.concatenate(([0], np.cumsum(kept)))
    parts = []
    for level, (m, w, p) in enumerate(zip(children, parents, cables, strict=True)):
        down_ports = children[level - 1] * cables[level - 1] if level else 0
        parts.append(_stage(start[level : level + 2], kept[level], width[level], down_ports, (m, w, p), rate))
    names = tuple(
        f"{label}{level}/{number // width[level]}.{number % width[level]}"
        for level in range(1, len(kept))
        for number in range(kept[level])
    )
    return Blueprint(hosts, names, Cables.join(parts))


def _stage(start: Integers, kept: int, width: int, down_ports: int, arity: tuple[int, int, int], rate: float) -> Cables:
    """Make the cables between the nodes of one level and their parents.

    :param start: vertices of the first node of the lower and of the upper level.
    :param kept: number of nodes of the lower level.
    :param width: W, number of nodes of the lower level per sub-tree.
    :param down_ports: number of down ports of a node of the lower level; its up ports follow.
    :param arity: m, w, p: numbers of children, parents, and cables to each parent between the two levels.
    :param rate: bandwidth in bytes/s.
    """
    m, w, p = arity
    child, parent_digit, cable = np.ogrid[:kept, :w, :p]
    subtree, number = child // width, child % width
    parent = (subtree // m) * (width * w) + parent_digit * width + number
    up_port = 1 + down_ports + parent_digit + cable * w
    down_port = 1 + subtree % m + cable * m
    return cables(start[0] + child, start[1] + parent, up_port, down_port, rate)


def _check(m: Sequence[int], w: Sequence[int], p: Sequence[int], hosts: int | None) -> int:
    _check_height(len(m))
    check_at_least(1, "children", m)
    check_at_least(1, "parents", w)
    check_at_least(1, "cables", p)
    if not len(m) == len(w) == len(p):
        raise FabricError(f"expecting lists of one length, got {len(m)} children, {len(w)} parents, {len(p)} cables")
    if w[0] * p[0] != 1:
        raise FabricError(f"expecting one cable a host (w1 = p1 = 1), got w1 = {w[0]}, p1 = {p[0]}")
    total = prod(m)
    if hosts is not None and not 1 <= hosts <= total:
        raise FabricError(f"expecting hosts between 1 and {total}, got {hosts}")
    return total if hosts is None else hosts


def _check_height(height: int) -> None:
    if height > MAX_HOPS // 2:
        raise FabricError(f"expecting at most {MAX_HOPS // 2} levels, got {height}")


def _formula(m: Sequence[int], w: Sequence[int], p: Sequence[int], hosts: int) -> str:
    lists = [m, w] if set(p) == {1} else [m, w, p]
    kind = "XGFT" if set(p) == {1} else "PGFT"
    text = f"{kind}({len(m)}; {'; '.join(','.join(map(str, values)) for values in lists)})"
    return text if hosts == prod(m) else f"{text} with {hosts} hosts"
