"""Allreduce, reduce-scatter and allgather on a circulant graph: the fewest steps and bytes for any number of ranks."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..butterfly import circulant
from ..exchanges import checked_order
from ..schedule import Schedule
from .butterflies import by_allgather, by_allreduce, by_reduce_scatter

__all__ = ["allgather_circulant", "allreduce_circulant", "reduce_scatter_circulant"]


def allreduce_circulant(size: int, *, order: ArrayLike | None = None, blocks: int | None = None) -> Schedule:
    """An allreduce on a circulant graph, in the fewest steps with the fewest bytes, for any number of ranks.

    Träff, arXiv:2410.14234, see `schedules.butterfly.circulant`. Messages: one in and one out per rank and step, in 2
    ceil(log2 p) steps; a message whose blocks pass the end of the vector is two. Bytes: 2 (1 - 1/p) of the vector from
    each rank, the least possible. It is fast for medium vectors where links are plenty; the largest messages go
    farthest in ``order``. It requires a commutative operation.

    :param size: number of ranks, p.
    :param order: ranks, shape (p,), by default ascending.
    :param blocks: number of blocks of the vector, by default one per rank; with fewer, ranks idle.
    """
    return by_allreduce([circulant(checked_order(size, order))], "circulant", blocks)


def reduce_scatter_circulant(
    size: int, *, order: ArrayLike | None = None, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter on a circulant graph, in the fewest steps with the fewest bytes, for any number of ranks.

    Träff, arXiv:2410.14234, see `schedules.butterfly.circulant`. Messages: one in and one out per rank and step, in
    ceil(log2 p) steps; a message whose blocks pass the end of the vector is two. Bytes: (1 - 1/p) of the vector from
    each rank, the least possible. It is fast for short and medium vectors where links are plenty. It requires a
    commutative operation.

    :param size: number of ranks, p.
    :param order: ranks, shape (p,), by default ascending.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    return by_reduce_scatter([circulant(checked_order(size, order))], "circulant", blocks, counts)


def allgather_circulant(
    size: int, *, order: ArrayLike | None = None, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather on a circulant graph, in the fewest steps with the fewest bytes, for any number of ranks.

    The reduce-scatter of that name backwards (Träff, arXiv:2410.14234), see `schedules.butterfly.circulant`. Messages:
    one in and one out per rank and step, in ceil(log2 p) steps; a message whose shares pass the end of all shares is
    two. Bytes: p - 1 shares into each rank, the least possible. It is fast for short and medium shares where links are
    plenty.

    :param size: number of ranks, p.
    :param order: ranks, shape (p,), by default ascending.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    return by_allgather([circulant(checked_order(size, order))], "circulant", blocks, counts)
