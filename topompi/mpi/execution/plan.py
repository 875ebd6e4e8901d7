"""Plans: one rank's transfers in a schedule, compiled into messages, local copies and reductions for each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...schedules.schedule import COPY, INPUT, OUTPUT, REDUCE, SCRATCH

__all__ = ["ARRIVED", "Message", "Moves", "Plan", "PlanPart", "Reduction", "Step", "compile_part"]

Integers = NDArray[np.int64]

ARRIVED = 3  # number of the buffer for received operands of reductions; INPUT, OUTPUT and SCRATCH are 0 to 2

_STEP, _SOURCE, _DESTINATION, _FROM, _BEGIN, _INTO, _TO, _LENGTH, _OPERATION, _PRECEDES = range(10)


@dataclass(frozen=True, eq=False)
class PlanPart:
    """The transfers of a schedule that one rank sends or receives.

    :param rank: the rank.
    :param rows: the transfers, one per row, sorted by step, with the columns of ``schedules.Schedule``, shape (rows,
        9).
    :param precedes: True for each transfer whose data must be the first operand of its reduction, because they come
        from lower ranks, shape (rows,); all True if the order of operands does not count.
    :param blocks: number of blocks into which the vector is divided, in collectives that divide a vector.
    :param independent: True if no step needs data that an earlier step has received or reduced.
    :param window: maximum number of steps under way at once; 0 if the number has no bound.
    """

    rank: int
    rows: Integers
    precedes: NDArray[np.bool_]
    blocks: int
    independent: bool
    window: int


class Message(NamedTuple):
    """A message: ``length`` units of a buffer from unit ``begin`` on, sent to or received from rank ``peer``."""

    peer: int
    buffer: int
    begin: int
    length: int


class Reduction(NamedTuple):
    """Units of one buffer, combined with equally many units of another.

    :param buffer: number of the buffer with the new units, which begin at unit ``begin``.
    :param begin: first new unit.
    :param held_buffer: number of the buffer with the units that take the result.
    :param held_begin: first unit that takes the result.
    :param length: number of units.
    :param precedes: True if the new units must be the first operand, because they come from lower ranks.
    """

    buffer: int
    begin: int
    held_buffer: int
    held_begin: int
    length: int
    precedes: bool


class Moves(NamedTuple):
    """Copies inside one rank's memory, from buffer number ``source`` to buffer number ``destination``.

    ``begin`` (first unit in the source), ``to`` (first unit in the destination) and ``length`` (number of units) have
    shape (copies,).
    """

    source: int
    begin: Integers
    destination: int
    to: Integers
    length: Integers


class Step(NamedTuple):
    """A rank's work in one step. Copies, receives and sends may run in any order; reductions follow the receives."""

    moves: tuple[Moves, ...]
    receives: tuple[Message, ...]
    sends: tuple[Message, ...]
    reductions: tuple[Reduction, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of one rank in a collective, in units whose size in bytes the call determines.

    :param steps: the steps in their order; if all steps of the schedule may overlap, they are one step here.
    :param window: maximum number of steps under way at once.
    :param scratch: number of units of the scratch buffer.
    :param arrived: number of units of the buffer ``ARRIVED``, for received operands of reductions.
    :param overwrites: True if the plan writes output before it has read all input, so that the two must not share
        memory.
    :param slices: number of slices into which every transfer is cut, so that one slice is sent while another is
        received. Each step of the schedule is then ``slices`` steps, one per slice, some of them empty. A step depends
        only on the previous step of the same slice.
    :param lasting: True if the first step's messages may last until all other steps, one after the other, are complete;
        ``window`` is 2 then.
    """

    steps: tuple[Step, ...]
    window: int
    scratch: int
    arrived: int
    overwrites: bool
    slices: int = 1
    lasting: bool = False

    def turns(self) -> Iterator[tuple[Step, bool]]:
        """The order of events in one run: a step with True when it begins, and with False when it must be complete.

        At most ``window`` steps are under way at once.
        """
        if self.lasting:
            first, *rest = self.steps
            yield first, True
            yield from ((step, begins) for step in rest for begins in (True, False))
            yield first, False
            return
        flying: deque[Step] = deque()
        for step in self.steps:
            yield step, True
            flying.append(step)
            if len(flying) == self.window:
                yield flying.popleft(), False
        yield from ((step, False) for step in flying)


def compile_part(
    part: PlanPart, length: int | None = None, shift: int | None = None, slices: int = 1, scale: int = 1
) -> Plan:
    """The plan for one rank's transfers in a schedule.

    Transfers of one step between the same two ranks become one message if their blocks are consecutive on both ranks.
    Both ranks merge the same transfers, so that they agree on the messages. Both leave out a transfer whose blocks are
    empty. A transfer of no blocks is a token, which is sent as an empty message.

    :param part: the rank's transfers, counted in blocks.
    :param length: units of the vector that the collective divides into blocks as evenly as possible; None if every
        block has ``scale`` units. If a length is given, every block must keep its number wherever it is copied; the
        scratch buffer may hold several vectors.
    :param shift: unit of the output at which the input begins, if they share memory; else None.
    :param slices: number of slices into which every transfer is cut. It may exceed 1 only if ranks forward and reduce
        the same units that they received, because then the slices are independent of each other.
    :param scale: units per block, if ``length`` is None.
    :raises ValueError: if ``length`` is given, and the schedule copies a block to another block's number.

    Cost: O(rows log rows); no messages.
    """
    rows: Integers = np.column_stack((part.rows, part.precedes)).astype(np.int64)
    if length is not None:
        rows = _divided(rows, np.arange(part.blocks + 1) * length // part.blocks)
    elif scale > 1:
        rows[:, [_BEGIN, _TO, _LENGTH]] *= scale
    window, token = part.window, part.rows[:, _LENGTH] == 0
    if slices > 1:
        if not part.independent:
            return _in_slices(rows, part, shift, slices)
        rows, window, token = _cut(rows, slices)[0], window * slices, np.repeat(token, slices)
    local = rows[:, _SOURCE] == rows[:, _DESTINATION]
    rows = rows[(rows[:, _LENGTH] > 0) | ~local & token]
    overwrites = False
    if shift is not None:
        rows = rows[~_stays(rows, shift)]
        overwrites = _overwrites(rows, part)
    rows = _merged(rows)
    chunks = np.split(rows, np.flatnonzero(np.diff(rows[:, _STEP])) + 1)
    overlap = part.independent and not (rows[:, _OPERATION] == REDUCE).any()
    if overlap and not 0 < window < len(chunks):
        chunks = [rows]
    return Plan(
        steps=tuple(_step(chunk, part.rank) for chunk in chunks),
        window=window if overlap and len(chunks) > 1 else 1,
        scratch=_reach(rows, part.rank),
        arrived=max(_arriving(rows[rows[:, _DESTINATION] == part.rank]), default=0),
        overwrites=overwrites,
    )


def _in_slices(rows: Integers, part: PlanPart, shift: int | None, slices: int) -> Plan:
    """The plan for transfers that are cut into slices, with one step for each step of the schedule and each slice.

    :param rows: the rank's transfers, counted in units, with the column ``precedes`` of the part.
    :param part: the rank's transfers, counted in blocks.
    :param shift: unit of the output at which the input begins, if they share memory; else None.
    :param slices: number of slices of every transfer.
    """
    rows, slice_of_row = _cut(rows, slices)
    overwrites = False
    needed = rows[:, _LENGTH] > 0
    if shift is not None:
        needed &= ~_stays(rows, shift)
        overwrites = _overwrites(rows[needed], part)
    rows, slice_of_row = rows[needed], slice_of_row[needed]
    step, place = np.unique(rows[:, _STEP] // slices, return_inverse=True)
    turn = place * slices + slice_of_row
    order = np.argsort(turn, kind="stable")
    bounds = np.searchsorted(turn[order], np.arange(len(step) * slices + 1)).tolist()
    pieces = [rows[order[begin:end]] for begin, end in pairwise(bounds)]
    arrived = max((end for piece in pieces for end in _arriving(piece[piece[:, _DESTINATION] == part.rank])), default=0)
    steps = (_step(piece, part.rank, arrived * (number % slices)) for number, piece in enumerate(pieces))
    return Plan(tuple(steps), slices, _reach(rows, part.rank), arrived * slices, overwrites, slices)


def _cut(rows: Integers, parts: int) -> tuple[Integers, Integers]:
    """Cut every transfer into ``parts`` slices, each in a step of its own; return them, and each one's slice number."""
    part = np.tile(np.arange(parts), len(rows))
    rows = np.repeat(rows, parts, axis=0)
    begin, end = (rows[:, _LENGTH] * number // parts for number in (part, part + 1))
    rows[:, _STEP] = rows[:, _STEP] * parts + part
    rows[:, _BEGIN] += begin
    rows[:, _TO] += begin
    rows[:, _LENGTH] = end - begin
    return rows, part


def _divided(rows: Integers, bounds: Integers) -> Integers:
    """The transfers, counted in units of the vector instead of blocks.

    :param rows: the transfers, counted in blocks; the scratch buffer may hold several vectors side by side.
    :param bounds: first unit of each block and the end of the last block, shape (blocks + 1,).
    """
    blocks, length = len(bounds) - 1, bounds[-1]
    (here, block), (there, same) = (np.divmod(rows[:, place], blocks) for place in (_BEGIN, _TO))
    if (block != same).any() or (block + rows[:, _LENGTH] > blocks).any():
        raise ValueError("expecting blocks that keep their numbers, where the last ones may be shorter")
    begin, end = bounds[block], bounds[block + rows[:, _LENGTH]]
    rows[:, _BEGIN], rows[:, _TO] = here * length + begin, there * length + begin
    rows[:, _LENGTH] = end - begin
    return rows


def _stays(rows: Integers, shift: int) -> NDArray[np.bool_]:
    """True for each transfer that copies data onto themselves, because input and output share memory, shape (rows,)."""
    stays: NDArray[np.bool_] = (
        (rows[:, _SOURCE] == rows[:, _DESTINATION])
        & (rows[:, _FROM] == INPUT)
        & (rows[:, _INTO] == OUTPUT)
        & (rows[:, _OPERATION] == COPY)
        & (rows[:, _BEGIN] + shift == rows[:, _TO])
    )
    return stays


def _overwrites(rows: Integers, part: PlanPart) -> bool:
    """Whether a rank's transfers write output before they have read all input."""
    read = rows[(rows[:, _SOURCE] == part.rank) & (rows[:, _FROM] == INPUT), _STEP]
    written = rows[(rows[:, _DESTINATION] == part.rank) & (rows[:, _INTO] == OUTPUT), _STEP]
    if not len(read) or not len(written):
        return False
    return bool(part.independent or written.min() <= read.max())


def _merged(rows: Integers) -> Integers:
    """The transfers, sorted by step; those of one step and pair of ranks with consecutive units are merged into one."""
    order = np.lexsort((rows[:, _DESTINATION], rows[:, _SOURCE], rows[:, _STEP]))
    rows = rows[order]
    same = [_STEP, _SOURCE, _DESTINATION, _FROM, _INTO, _OPERATION, _PRECEDES]
    ends, begins = rows[:-1], rows[1:]
    goes_on = (ends[:, same] == begins[:, same]).all(axis=1)
    for place in (_BEGIN, _TO):
        goes_on &= ends[:, place] + ends[:, _LENGTH] == begins[:, place]
    first = np.flatnonzero(np.append(True, ~goes_on)[: len(rows)])
    merged = rows[first]
    if len(first):
        merged[:, _LENGTH] = np.add.reduceat(rows[:, _LENGTH], first)
    # Inside a step the given order is kept, so that the slices of a transfer stay in order.
    return merged[np.lexsort((order[first], merged[:, _STEP]))]


def _step(rows: Integers, rank: int, arrives_at: int = 0) -> Step:
    here, there = rows[:, _SOURCE] == rank, rows[:, _DESTINATION] == rank
    reduces = rows[:, _OPERATION] == REDUCE
    arrived = iter(_arriving(rows[there & ~here & reduces], ends=False))
    receives, reductions = [], []
    for row in rows[there & ~here].tolist():
        peer, into, to, length = row[_SOURCE], row[_INTO], row[_TO], row[_LENGTH]
        if row[_OPERATION] == REDUCE:
            at = arrives_at + next(arrived)
            receives.append(Message(peer, ARRIVED, at, length))
            reductions.append(Reduction(ARRIVED, at, into, to, length, bool(row[_PRECEDES])))
        else:
            receives.append(Message(peer, into, to, length))
    for row in rows[there & here & reduces].tolist():
        reductions.append(Reduction(row[_FROM], row[_BEGIN], row[_INTO], row[_TO], row[_LENGTH], bool(row[_PRECEDES])))
    sends = [Message(row[_DESTINATION], row[_FROM], row[_BEGIN], row[_LENGTH]) for row in rows[here & ~there].tolist()]
    return Step(_moves(rows[here & there & ~reduces]), tuple(receives), tuple(sends), tuple(reductions))


def _moves(rows: Integers) -> tuple[Moves, ...]:
    """The local copies, grouped by pairs of buffers."""
    found = []
    for source in (INPUT, OUTPUT, SCRATCH):
        for destination in (OUTPUT, SCRATCH):
            chosen = rows[(rows[:, _FROM] == source) & (rows[:, _INTO] == destination)]
            if len(chosen):
                begin, to, length = chosen[:, _BEGIN], chosen[:, _TO], chosen[:, _LENGTH]
                found.append(Moves(source, begin, destination, to, length))
    return tuple(found)


def _arriving(rows: Integers, ends: bool = True) -> list[int]:
    """The places in the buffer ``ARRIVED`` of the messages to be reduced, those of one step side by side from unit 0.

    :param rows: transfers that the rank receives.
    :param ends: True for the unit behind each message, False for its first unit.
    """
    rows = rows[(rows[:, _OPERATION] == REDUCE) & (rows[:, _SOURCE] != rows[:, _DESTINATION])]
    end = np.cumsum(rows[:, _LENGTH])
    opens = np.append(True, np.diff(rows[:, _STEP]) > 0)[: len(rows)]
    before = np.maximum.accumulate(np.where(opens, end - rows[:, _LENGTH], 0))
    places: list[int] = (end - before - (0 if ends else rows[:, _LENGTH])).tolist()
    return places


def _reach(rows: Integers, rank: int) -> int:
    """Number of units that the scratch buffer needs for a rank's transfers."""
    ends = [0]
    for who, buffer, begin in ((_SOURCE, _FROM, _BEGIN), (_DESTINATION, _INTO, _TO)):
        used = rows[(rows[:, who] == rank) & (rows[:, buffer] == SCRATCH)]
        ends.append(int((used[:, begin] + used[:, _LENGTH]).max(initial=0)))
    return max(ends)
