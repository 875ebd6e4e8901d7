"""Algorithms with cut messages: ``ring/32K`` is ``ring`` with messages of at most 32 KiB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..inputs.sizes import size_in
from .network import Network
from .registry import ALGORITHMS, current_name, find_algorithm, make
from .schedule import Schedule
from .table import MOST_PARTS

__all__ = [
    "Pieces",
    "SizedSchedule",
    "can_be_cut",
    "cut",
    "cuttable",
    "divides",
    "make_cut",
    "pieces_of",
    "segments_of",
    "variants",
]


def cut(algorithm: str) -> tuple[str, int | None]:
    """Split a name into the algorithm and the largest size of its messages in bytes, None if the name has no size.

    Names of files (``.json``) and functions (``module:function``) never have a size.

    :raises ValueError: if the part behind the slash is no size.
    """
    name, slash, size = algorithm.partition("/")
    if not slash or ":" in algorithm or algorithm.endswith(".json"):
        return algorithm, None
    nbytes = size_in(size)
    if not nbytes:
        raise ValueError(f"expecting bytes as 32K behind the slash, got {algorithm!r}")
    return name, nbytes


def cuttable(collective: str) -> list[str]:
    """The names of a collective's algorithms whose messages can be cut."""
    return [name for name, one in ALGORITHMS.get(collective, {}).items() if one.cut]


def can_be_cut(collective: str, algorithm: object) -> bool:
    """Whether a value is the name of an algorithm whose messages can be cut, with a size, as in ``ring/32K``."""
    try:
        name, size = cut(algorithm) if isinstance(algorithm, str) else ("", None)
    except ValueError:
        return False
    return size is not None and name in cuttable(collective)


def divides(collective: str, name: str) -> bool:
    """Whether an algorithm divides a message into any given number of blocks."""
    return ALGORITHMS[collective][name].divides


def segments_of(nbytes: int, most: int) -> int:
    """The number of parts, at most 256, into which ``nbytes`` are cut so that no part exceeds ``most`` bytes."""
    return min(max(-(-nbytes // most), 1), MOST_PARTS)


class Pieces(NamedTuple):
    """The division of an algorithm's messages into pieces.

    :param name: the algorithm's name without the size.
    :param blocks: number of blocks into which a message is divided; None for the algorithm's default number.
    :param slices: number of slices, the parts of every transfer that are sent separately.
    """

    name: str
    blocks: int | None = None
    slices: int = 1


def pieces_of(collective: str, algorithm: str, nbytes: int, share: int | None = None) -> Pieces:
    """The division of an algorithm's messages that follows from the size in its name.

    :param collective: a key of ``ALGORITHMS``.
    :param algorithm: name that ``find_algorithm`` takes, with or without a size.
    :param nbytes: bytes of the message that the algorithm divides into blocks.
    :param share: bytes of one rank's share of the message, which algorithms such as ``ring`` send as one transfer; by
        default ``nbytes``.
    :raises ValueError: if ``find_algorithm`` refuses the name, or if the algorithm's messages cannot be cut.
    """
    name, most = cut(current_name(algorithm))
    find_algorithm(collective, name)
    if most is None:
        return Pieces(name)
    if name not in cuttable(collective):
        known = ", ".join(cuttable(collective)) or "none"
        raise ValueError(
            f"expecting an algorithm for {collective} whose messages can be cut ({known}), got {algorithm!r}"
        )
    if divides(collective, name):
        return Pieces(name, blocks=segments_of(nbytes, most))
    return Pieces(name, slices=segments_of(nbytes if share is None else share, most))


@dataclass(frozen=True, eq=False)
class SizedSchedule:
    """A schedule together with the size of its blocks.

    :param schedule: the transfers, counted in blocks.
    :param block_bytes: bytes per block.
    :param slices: number of slices, the parts of every transfer that are sent separately.
    """

    schedule: Schedule
    block_bytes: int
    slices: int = 1


def make_cut(
    collective: str,
    algorithm: str,
    network: Network,
    root: int,
    nbytes: int,
    blocks: int | None = None,
    **parameters: object,
) -> SizedSchedule:
    """Make the schedule of an algorithm for a call of given length, and compute the size of its blocks, rounded up.

    :param collective: a key of ``ALGORITHMS``.
    :param algorithm: name that ``find_algorithm`` takes, with or without a size.
    :param network: the job's network.
    :param root: the root of a rooted collective; other collectives ignore it.
    :param nbytes: bytes of the whole message for bcast, reduce and allreduce; bytes that one rank sends to one other
        for alltoall and fft; bytes of one rank's share for the other collectives.
    :param blocks: number of blocks of one message; by default the algorithm's default number, at most one per byte.
    :param parameters: further keyword arguments of the generator.
    :raises ValueError: if ``make`` or ``pieces_of`` refuses a value, or if both ``blocks`` and a size are given.
    :raises ScheduleError: if the schedule of a user's file or function is wrong.
    """
    share = nbytes // network.num_ranks if collective == "allreduce" else nbytes
    pieces = pieces_of(collective, algorithm, nbytes, share)
    if blocks is not None and pieces.name != current_name(algorithm):
        raise ValueError(f"expecting a number of blocks or an algorithm that is cut, got {blocks} and {algorithm!r}")
    wanted = pieces.blocks if blocks is None else blocks
    if wanted is None:
        wanted = find_algorithm(collective, pieces.name).blocks_of(network, nbytes)
    schedule = make(collective, pieces.name, network, root, wanted, **parameters)
    if blocks is None and schedule.blocks > nbytes:  # a block has at least one byte
        schedule = make(collective, pieces.name, network, root, nbytes, **parameters)
    return SizedSchedule(schedule, -(-nbytes // schedule.blocks), pieces.slices)


def variants(collective: str, names: Iterable[str], nbytes: int, ranks: int) -> list[str]:
    """The given algorithms' names with a size, as ``ring/32K``: one per size of parts that pays for this call.

    :param collective: a key of ``ALGORITHMS``.
    :param names: names of algorithms; unknown names are ignored.
    :param nbytes: bytes of the call: of the message of a broadcast, the vector of a reduction, else of one block.
    :param ranks: number of ranks, among which reductions divide a vector.
    """
    share = nbytes // ranks if collective in ("allreduce", "reduce_scatter") else nbytes
    known = ALGORITHMS.get(collective, {})
    return [
        f"{name}/{size >> 10}K"
        for name in names
        if name in known
        for size, parts in known[name].segments.items()
        if segments_of(nbytes if known[name].divides else share, size) in parts
    ]
