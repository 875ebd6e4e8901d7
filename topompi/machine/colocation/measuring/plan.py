"""The plan of a measurement of pairs as pure functions: which runs are missing, and which comes next.

Every pair is visited in blocks. A block has a solo segment of each program and a shared segment between them, in
alternating order (ABAB), so that slow drift of the machine cancels in the ratio of shared to solo times.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import PurePath
from typing import NamedTuple

from ..errors import ColocationError

__all__ = [
    "MeasuredProgram",
    "MeasuredRun",
    "Pair",
    "Segment",
    "StoppingRules",
    "missing_of",
    "next_segment",
    "pairs_of",
    "programs_of",
]

Pair = tuple[str, str]
_LONGEST = 131_072  # letters of a command line, as long as the kernel lets one word of it be


class MeasuredProgram(NamedTuple):
    """A program to measure.

    :param name: its name in the matrix.
    :param command: command line, as words.
    """

    name: str
    command: tuple[str, ...]


class Segment(NamedTuple):
    """A part of a block: one program alone, or two beside each other, each restarted until both have ended once.

    :param pair: the pair whose block it is.
    :param block: number of the block of this pair, from 0.
    :param programs: the programs that run: one, or the two of the pair.
    """

    pair: Pair
    block: int
    programs: tuple[str, ...]


class MeasuredRun(NamedTuple):
    """A completed run, during all of which the neighbour ran, if there is one.

    :param pair: the pair in whose block the run is.
    :param block: number of the block of this pair, from 0.
    :param program: the program.
    :param beside: its neighbour, None if it ran alone.
    :param seconds: run time.
    """

    pair: Pair
    block: int
    program: str
    beside: str | None
    seconds: float


@dataclass(frozen=True)
class StoppingRules:
    """The rules by which an estimate is good enough.

    :param least: least number of blocks per pair.
    :param most: largest number of blocks per pair.
    :param within: half of the interval's length, relative to the slow-down, at which a pair needs no further block.
    """

    least: int = 3
    most: int = 9
    within: float = 0.02

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ColocationError(f"blocks: expecting at least 1 and at most {self.most}, got {self.least}")
        if not self.within > 0:
            raise ColocationError(f"within: expecting a positive share, got {self.within}")


def programs_of(words: Sequence[str]) -> list[MeasuredProgram]:
    """Read programs from words ``COMMAND`` or ``NAME=COMMAND``; without a name, that of the executable is taken.

    :param words: the words; each is a whole command line with its arguments.
    :raises ColocationError: if a command is empty or unreadable, or a name is there twice.
    """
    made: dict[str, MeasuredProgram] = {}
    for word in words:
        name, equals, line = word.partition("=")
        if not equals or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            name, line = "", word
        if len(line) > _LONGEST:
            raise ColocationError(f"program: expecting a command line of up to {_LONGEST:,} letters, got {len(line):,}")
        try:
            command = tuple(shlex.split(line))
        except ValueError as error:
            raise ColocationError(f"program: expecting a command line, got {word!r}: {error}") from None
        if not command:
            raise ColocationError(f"program: expecting a command line, got {word!r}")
        name = name or PurePath(command[0]).name
        if name in made:
            raise ColocationError(f"program: expecting each name once, got {name!r} twice; name them NAME=COMMAND")
        made[name] = MeasuredProgram(name, command)
    return list(made.values())


def pairs_of(names: Sequence[str], only: Sequence[str] = ()) -> list[Pair]:
    """Return the pairs to measure, in the order of names: all, or ``only`` and each of their programs beside itself.

    A program beside a second copy of itself is its compact mode, to which all of its speed-ups are relative.

    :param names: names of the programs.
    :param only: pairs in the form ``A/B``; empty for all.
    :raises ColocationError: if a pair is malformed or names another program.
    """
    wanted = set[Pair]()
    for word in only:
        one, _, other = word.partition("/")
        if one not in names or other not in names:
            raise ColocationError(f"--only: expecting PROGRAM/PROGRAM with two of {', '.join(names)}, got {word!r}")
        wanted |= {(one, one), (other, other), (one, other), (other, one)}
    return [pair for pair in combinations_with_replacement(names, 2) if not only or pair in wanted]


def next_segment(
    pairs: Sequence[Pair], runs: Sequence[MeasuredRun], spread: Mapping[Pair, float], rules: StoppingRules
) -> Segment | None:
    """Choose the next segment, or return None if all pairs are good enough.

    Begun blocks are finished first. Then the pair with the fewest blocks is visited while some have fewer than the
    least number, and then the pair with the widest interval.

    :param pairs: the pairs to measure.
    :param runs: completed runs, of these pairs and others.
    :param spread: half of the interval of each pair's slow-downs, relative; absent or infinite if unknown.
    :param rules: the rules.
    """
    missing = {pair: missing_of(pair, runs) for pair in pairs}
    for parts in missing.values():
        if parts and len(parts) < len(_parts(parts[0].pair, parts[0].block)):
            return parts[0]
    blocks = {pair: parts[0].block for pair, parts in missing.items()}
    open_pairs = [pair for pair in pairs if not _is_good(blocks[pair], spread.get(pair, math.inf), rules)]
    if not open_pairs:
        return None
    chosen = min(open_pairs, key=lambda pair: (min(blocks[pair], rules.least), -spread.get(pair, math.inf)))
    return missing[chosen][0]


def missing_of(pair: Pair, runs: Sequence[MeasuredRun]) -> list[Segment]:
    """Return the segments that the pair's first incomplete block lacks, in their order.

    :param pair: the pair.
    :param runs: completed runs.
    """
    have: dict[int, set[tuple[str, str | None]]] = {}
    for run in runs:
        if run.pair == pair:
            have.setdefault(run.block, set()).add((run.program, run.beside))
    block = 0
    while True:
        lacking = [part for part in _parts(pair, block) if not _runs_in(part) <= have.get(block, set())]
        if lacking:
            return lacking
        block += 1


def _parts(pair: Pair, block: int) -> list[Segment]:
    """Return the segments of a block: one program alone, both, and the other alone; reversed in every second block."""
    first, *rest = [Segment(pair, block, (name,)) for name in dict.fromkeys(pair)]
    parts = [first, Segment(pair, block, pair), *rest]
    return parts[::-1] if block % 2 else parts


def _runs_in(part: Segment) -> set[tuple[str, str | None]]:
    """Return the runs, as program and neighbour, that a segment yields."""
    if len(part.programs) == 1:
        return {(part.programs[0], None)}
    one, other = part.programs
    return {(one, other), (other, one)}


def _is_good(blocks: int, spread: float, rules: StoppingRules) -> bool:
    return blocks >= rules.most or (blocks >= rules.least and spread <= rules.within)
