"""Algorithms whose messages are cut: ``ring/32K`` is ``ring`` with messages of at most 32 KiB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .network import Network
from .registry import ALGORITHMS, MOST_PARTS, current_name, find_algorithm, make
from .schedule import Schedule

__all__ = [
    "Cut",
    "Pieces",
    "can_be_cut",
    "cut",
    "cuttable",
    "divides",
    "make_cut",
    "pieces_of",
    "segments_of",
    "variants",
]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def cut(algorithm: str) -> tuple[str, int | None]:
    """The name of an algorithm, and the bytes of its messages at most; None where it is not cut, such as a file.

    :raises ValueError: for a size that is none.
    """
    name, slash, size = algorithm.partition("/")
    if not slash or ":" in algorithm or algorithm.endswith(".json"):
        return algorithm, None
    number, unit = (size[:-1], size[-1:]) if size[-1:] in ("K", "M") else (size, "")
    if not number.isdecimal() or int(number) == 0:
        raise ValueError(f"expecting bytes as 32K behind the slash, got {algorithm!r}")
    return name, int(number) * _UNITS[unit]


def cuttable(collective: str) -> list[str]:
    """Names of the algorithms of a collective whose messages may be cut."""
    return [name for name, one in ALGORITHMS.get(collective, {}).items() if one.cut]


def can_be_cut(collective: str, algorithm: object) -> bool:
    """Whether this is the name of an algorithm of a collective, and of a size of its messages."""
    try:
        name, size = cut(algorithm) if isinstance(algorithm, str) else ("", None)
    except ValueError:
        return False
    return size is not None and name in cuttable(collective)


def divides(collective: str, name: str) -> bool:
    """Whether an algorithm divides a message into as many blocks as one asks for."""
    return ALGORITHMS[collective][name].divides


def segments_of(nbytes: int, most: int) -> int:
    """Into how many parts a message of so many bytes is cut, of at most so many bytes each; 256 parts at most."""
    return min(max(-(-nbytes // most), 1), MOST_PARTS)


class Pieces(NamedTuple):
    """The division of an algorithm's messages into pieces.

    :param name: the algorithm's name, without the size.
    :param blocks: into which a message is divided; None for as many as the algorithm divides it into by itself.
    :param lanes: parts into which every transfer is cut, each of which travels by itself.
    """

    name: str
    blocks: int | None = None
    lanes: int = 1


def pieces_of(collective: str, algorithm: str, nbytes: int, share: int | None = None) -> Pieces:
    """The pieces in which an algorithm sends messages.

    :param collective: a key of ``ALGORITHMS``.
    :param algorithm: what ``find_algorithm`` takes, perhaps cut.
    :param nbytes: bytes of the message that the algorithm divides into blocks.
    :param share: bytes of one rank's share of it, which is what ``ring`` and the like send; by default ``nbytes``.
    :raises ValueError: as ``find_algorithm``, and for a cut of messages that cannot be cut.
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
    return Pieces(name, lanes=segments_of(nbytes if share is None else share, most))


@dataclass(frozen=True, eq=False)
class Cut:
    """A schedule for messages of a size.

    :param schedule: what is sent, in blocks.
    :param block_bytes: bytes of a block.
    :param lanes: parts into which every transfer is cut.
    """

    schedule: Schedule
    block_bytes: int
    lanes: int = 1


def make_cut(
    collective: str,
    algorithm: str,
    network: Network,
    root: int,
    nbytes: int,
    blocks: int | None = None,
    **parameters: Any,
) -> Cut:
    """The schedule of an algorithm, perhaps cut, for messages that are divided into whole blocks, rounded up.

    :param collective: a key of ``ALGORITHMS``.
    :param algorithm: what ``find_algorithm`` takes, perhaps cut.
    :param network: the job's network.
    :param root: the root of a rooted collective; other collectives ignore it.
    :param nbytes: of bcast, reduce and allreduce the whole message; of others one rank's share, of alltoall and fft
        what one rank has for one other.
    :param blocks: blocks of one message; by default the algorithm's own choice, none below a byte.
    :param parameters: the generator's own, by name.
    :raises ValueError: as ``make`` and ``pieces_of``, and for blocks of an algorithm that is cut.
    :raises ScheduleError: as ``make``.
    """
    share = nbytes // network.num_ranks if collective == "allreduce" else nbytes
    pieces = pieces_of(collective, algorithm, nbytes, share)
    if blocks is not None and pieces.name != current_name(algorithm):
        raise ValueError(f"expecting a number of blocks or an algorithm that is cut, got {blocks} and {algorithm!r}")
    wanted = pieces.blocks if blocks is None else blocks
    schedule = make(collective, pieces.name, network, root, wanted, **parameters)
    if blocks is None and schedule.blocks > nbytes:  # no block below a byte
        schedule = make(collective, pieces.name, network, root, nbytes, **parameters)
    return Cut(schedule, -(-nbytes // schedule.blocks), pieces.lanes)


def variants(collective: str, names: Iterable[str], nbytes: int, ranks: int) -> list[str]:
    """The algorithms of these names that are worth cutting, cut.

    :param collective: a key of ``ALGORITHMS``.
    :param names: of algorithms; others than those of the collective are passed over.
    :param nbytes: as ``Selector.choose`` counts them.
    :param ranks: among which reductions divide a vector.
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
