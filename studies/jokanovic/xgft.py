"""Closed forms of extended generalised fat trees: vertices, links and the footprint of a regular placement.

XGFT(h; m1..mh; w1..wh) is that of Öhring et al., On generalized fat trees, 1995: a vertex of level l has m(l) children
and w(l+1) parents; hosts are level 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from topompi.machine.interference.errors import InterferenceError

__all__ = ["footprint", "sub_tree_links", "up_links", "vertices"]


def vertices(children: Sequence[int], parents: Sequence[int]) -> list[int]:
    """Number of vertices of each level, from the hosts to the roots.

    :param children: m1..mh.
    :param parents: w1..wh.
    :raises InterferenceError: if the lists differ in length, or a number is below 1.
    """
    if len(children) != len(parents) or min((*children, *parents), default=0) < 1:
        text = f"{list(children)} and {list(parents)}"
        raise InterferenceError(f"xgft: expecting as many children as parents, all of at least 1, got {text}")
    return [prod(children[level:]) * prod(parents[:level]) for level in range(len(children) + 1)]


def up_links(children: Sequence[int], parents: Sequence[int]) -> list[int]:
    """Number of links upwards out of each level below the roots: vertices times parents.

    :param children: m1..mh.
    :param parents: w1..wh.
    """
    return [count * more for count, more in zip(vertices(children, parents), parents, strict=False)]


def sub_tree_links(parents: Sequence[int], level: int) -> int:
    """Number of links upwards out of one sub-tree, whose top vertices are of the level: w1 ... w(level+1).

    :param parents: w1..wh.
    :param level: number of the level, from 0 (one host) to h - 1.
    """
    return prod(parents[: level + 1])


def footprint(children: Sequence[int], nodes: int, each: int) -> list[int]:
    """Number of sub-trees of each level that a job uses, which has some nodes on each of consecutive leaf switches.

    :param children: m1..mh.
    :param nodes: number of nodes of the job.
    :param each: number of its nodes on each leaf switch, up to m1.
    :raises InterferenceError: if the job does not fit.
    """
    leaves = -(-nodes // each)
    if not 1 <= each <= children[0] or leaves > prod(children[1:]):
        raise InterferenceError(f"xgft: expecting a job that fits, got {nodes} nodes, {each} per leaf switch")
    return [nodes, *(-(-leaves // prod(children[1:level])) for level in range(1, len(children)))]
