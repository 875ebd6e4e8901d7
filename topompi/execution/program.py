"""A plan bound to buffers: a list of mpi4py calls with their arguments, for one run or for many."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from mpi4py import MPI

from .buffers import Blocks, Bytes, address_of, message_at
from .plan import Message, Moves, Plan, Reduction, Step

__all__ = ["Area", "Call", "Flight", "Pieces", "Span", "Stage", "calls_of", "persistent_stages"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Specification = list[Any]

TAG = 0  # of all messages: the communicator is ours alone, and both ends of a pair post in one order
OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
CELL = 256  # bytes of a message that Open MPI sends inline, btl_sm_max_inline_send
FEWEST_ROWS = 4  # moves of less than so many blocks are slices, not indices


class Area(Protocol):
    """Units of memory that a plan's messages and moves name."""

    def message(self, begin: int, length: int) -> Specification | None:
        """What mpi4py takes for some units; None for what there is no message for."""

    def moves(self, other: Any, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this area to another."""


@dataclass(frozen=True, slots=True)
class Span:
    """Units of equal pitch, side by side.

    :param memory: their bytes.
    :param pitch: bytes from one unit to the next.
    :param datatype: of what they hold, ``entries`` in each unit.
    :param dense: whether the data are all bytes of the memory.
    """

    memory: MPI.buffer
    pitch: int
    datatype: MPI.Datatype
    entries: int
    dense: bool

    @classmethod
    def of_bytes(cls, memory: Any, pitch: int) -> Span:
        """Units of so many plain bytes."""
        return cls(MPI.buffer.frombuffer(memory), pitch, MPI.BYTE, pitch, True)

    def like(self, units: int) -> Span:
        """New memory for so many units of this kind."""
        memory = MPI.buffer.frombuffer(np.empty(units * self.pitch, dtype=np.uint8))
        return Span(memory, self.pitch, self.datatype, self.entries, self.dense)

    def within(self, begin: int, units: int) -> Span:
        """Some of the units."""
        memory = self.memory[begin * self.pitch : (begin + units) * self.pitch]
        return Span(memory, self.pitch, self.datatype, self.entries, self.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """What mpi4py takes for some units."""
        pitch = self.pitch
        return [self.memory[begin * pitch : (begin + length) * pitch], length * self.entries, self.datatype]

    def moves(self, other: Span, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this span to another: by indices where they are many and short."""
        if not self.dense:
            pairs = zip(moves.begin.tolist(), moves.to.tolist(), moves.length.tolist(), strict=True)
            return [
                (alone.Sendrecv, (self.message(begin, length), 0, TAG, other.message(to, length), 0, TAG))
                for begin, to, length in pairs
            ]
        if len(moves.length) > FEWEST_ROWS and moves.length.sum() <= FEWEST_ROWS * len(moves.length):
            return [_by_index(self, other, moves)]
        source, target, pitch = self.view(), other.view(), self.pitch
        return [
            (np.copyto, (target[to : to + length], source[begin : begin + length]))
            for begin, to, length in (pitch * np.stack((moves.begin, moves.to, moves.length), axis=1)).tolist()
        ]

    def view(self) -> Bytes:
        """The bytes of all units."""
        memory: Any = self.memory  # numpy's types do not know that it is a buffer
        view: Bytes = np.frombuffer(memory, dtype=np.uint8)
        return view


@dataclass(frozen=True, slots=True)
class Pieces:
    """Units of any size, each with a datatype and a place of its own: what the v- and w-forms are about.

    :param messages: what mpi4py takes for each unit, by address; None where it holds nothing.
    :param dense: whether their datatypes are predefined.
    """

    messages: Sequence[Specification | None]
    dense: bool = False

    @classmethod
    def of(cls, blocks: Blocks) -> Pieces:
        """Blocks of one datatype."""
        kind = blocks.datatype
        addresses = address_of(blocks.buffer) + kind.extent * blocks.displs
        places = zip(blocks.counts.tolist(), addresses.tolist(), strict=True)
        messages = [message_at(address, count, kind) if count else None for count, address in places]
        return cls(messages, blocks.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """What mpi4py takes for one unit."""
        if length != 1:
            raise ValueError(f"expecting one unit a message, got {length}")
        return self.messages[begin]

    def moves(self, other: Pieces, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units to other pieces, whatever the two datatypes."""
        pairs = [(self.message(*place), other.message(*to)) for place, to in _ends(moves)]
        return [(alone.Sendrecv, (here, 0, TAG, there, 0, TAG)) for here, there in pairs if here and there]


def _ends(moves: Moves) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    rows = zip(moves.begin.tolist(), moves.to.tolist(), moves.length.tolist(), strict=True)
    return [((begin, length), (to, length)) for begin, to, length in rows]


def _by_index(source: Span, target: Span, moves: Moves) -> Call:
    """All moves as one copy of rows of machine words."""
    word = next(width for width in (8, 4, 2, 1) if source.pitch % width == 0)
    shape, kind = (-1, source.pitch // word), np.dtype(f"u{word}")
    here, there = source.view().view(kind).reshape(shape), target.view().view(kind).reshape(shape)
    inner = np.arange(moves.length.sum()) - np.repeat(np.cumsum(moves.length) - moves.length, moves.length)
    begin, to = (np.repeat(first, moves.length) + inner for first in (moves.begin, moves.to))
    return _copy_rows, (here, begin, there, to)


def _copy_rows(source: Bytes, begin: Any, target: Bytes, to: Any) -> None:
    target[to] = source[begin]


def calls_of(
    plan: Plan, areas: Mapping[int, Area], comm: MPI.Intracomm, alone: MPI.Intracomm, op: MPI.Op | None
) -> list[Call]:
    """The calls of one run: one call a step with one message each way, else non-blocking ones and one wait.

    :param areas: the memory of each buffer.
    :param comm: for the messages; no others may pass there.
    :param alone: a communicator of this rank only, which copies what is not dense.
    """
    posts = [_posts(step, areas, comm.Irecv, comm.Isend) for step in plan.steps]
    if plan.lanes > 1:
        moves = [_moves(step, areas, alone) for step in plan.steps]
        reductions = [_reductions(step, areas, op, alone) for step in plan.steps]
        return [(_stream_in_lanes, (list(zip(moves, posts, reductions, strict=True)), plan.lanes))]
    if plan.window > 1:
        moved = [call for step in plan.steps for call in _moves(step, areas, alone)]
        return [*moved, (_stream, ([of_step for of_step in posts if of_step], plan.window))]
    calls: list[Call] = []
    for step, of_step in zip(plan.steps, posts, strict=True):
        calls += _moves(step, areas, alone)
        calls += _blocking(of_step, comm)
        calls += _reductions(step, areas, op, alone)
    return calls


class Stage(NamedTuple):
    """One call of a run that can be left and taken up again.

    :param test: where the call waits: whether it would not have to, and if so, completes what it waits for.
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    test: Callable[[], bool] | None = None


class Flight:
    """Messages that are posted together, again and again.

    Persistent requests, but for small messages of Open MPI: there a persistent send takes several times as long as a
    new non-blocking one, which alone takes the path for messages that fit a cell of shared memory.
    """

    def __init__(self, posts: list[Call], comm: MPI.Intracomm) -> None:
        self._posts = posts
        self.persistent = not (OPEN_MPI and all(_bytes_of(arguments[0]) <= CELL for _, arguments in posts))
        self._requests: list[Any] = []
        if self.persistent:
            start: dict[Any, Any] = {comm.Isend: comm.Send_init, comm.Irecv: comm.Recv_init}
            self._requests = [start[call](*arguments) for call, arguments in posts]

    def stages(self) -> tuple[Stage, Stage]:
        """To post the messages, and to wait for them."""
        if self.persistent and len(self._requests) == 1:
            request = self._requests[0]
            return Stage(request.Start, ()), Stage(request.Wait, (), request.Test)
        if len(self._posts) == 1:
            return Stage(self._post_one, self._posts[0]), Stage(self._wait_one, (), self._test)
        return Stage(self._post, ()), Stage(self._wait, (), self._test)

    def _post_one(self, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._requests = [call(*arguments)]

    def _wait_one(self) -> None:
        self._requests[0].Wait()

    def _post(self) -> None:
        if self.persistent:
            MPI.Prequest.Startall(self._requests)
        else:
            self._requests = [call(*arguments) for call, arguments in self._posts]

    def _wait(self) -> None:
        MPI.Request.Waitall(self._requests)

    def _test(self) -> bool:
        return MPI.Request.Testall(self._requests)

    def free(self) -> None:
        """Free what is persistent."""
        if self.persistent:
            for request in self._requests:
                request.Free()


def _bytes_of(message: Specification) -> int:
    return int(message[1] * message[2].Get_size())


def persistent_stages(
    plan: Plan, areas: Mapping[int, Area], comm: MPI.Intracomm, alone: MPI.Intracomm, op: MPI.Op | None
) -> tuple[list[Stage], list[Flight]]:
    """The calls of a run that will be repeated, one start and one wait a step, and what it posts."""
    stages: list[Stage] = []
    flights: list[Flight] = []
    waits: deque[list[Stage]] = deque()  # of each step in flight what completes it
    for step in plan.steps:
        stages += (Stage(*call) for call in _moves(step, areas, alone))
        posts = _posts(step, areas, comm.Irecv, comm.Isend)
        ends = [Stage(*call) for call in _reductions(step, areas, op, alone)]
        if posts:
            flights.append(Flight(posts, comm))
            start, wait = flights[-1].stages()
            stages.append(start)
            ends.insert(0, wait)
        if ends or plan.lanes > 1:  # a lane keeps its turn where it has nothing to do
            waits.append(ends)
        if len(waits) == plan.window:
            stages += waits.popleft()
    return [*stages, *(stage for ends in waits for stage in ends)], flights


def _posts(step: Step, areas: Mapping[int, Area], receive: Any, send: Any) -> list[Call]:
    """The receives and sends of a step."""
    return [
        (call, (message, one.peer, TAG))
        for call, some in ((receive, step.receives), (send, step.sends))
        for one in some
        if (message := _message(one, areas)) is not None
    ]


def _message(one: Message, areas: Mapping[int, Area]) -> Specification | None:
    if not one.length:
        return [b"", 0, MPI.BYTE]
    return areas[one.buffer].message(one.begin, one.length)


def _moves(step: Step, areas: Mapping[int, Area], alone: MPI.Intracomm) -> list[Call]:
    return [call for some in step.moves for call in areas[some.source].moves(areas[some.destination], some, alone)]


def _blocking(posts: list[Call], comm: MPI.Intracomm) -> list[Call]:
    """The calls of a step that ends before the next begins."""
    calls = [call for call, _ in posts]
    if calls == [comm.Irecv]:
        return [(comm.Recv, posts[0][1])]
    if calls == [comm.Isend]:
        return [(comm.Send, posts[0][1])]
    if calls == [comm.Irecv, comm.Isend]:
        return [(comm.Sendrecv, (*posts[1][1], *posts[0][1]))]
    return [(_complete, (posts,))] if posts else []


def _complete(posts: list[Call]) -> None:
    MPI.Request.Waitall([post(*arguments) for post, arguments in posts])


def _stream(steps: list[list[Call]], window: int) -> None:
    """Post the steps in order, no more than a window of them in flight."""
    flying: deque[list[MPI.Request]] = deque()
    for posts in steps:
        if len(flying) == window:
            MPI.Request.Waitall(flying.popleft())
        flying.append([post(*arguments) for post, arguments in posts])
    for requests in flying:
        MPI.Request.Waitall(requests)


def _stream_in_lanes(steps: list[tuple[list[Call], list[Call], list[Call]]], lanes: int) -> None:
    """Post steps in order, each when the one before it on its lane is complete: moves, messages, then reductions."""
    flying: deque[tuple[list[MPI.Request], list[Call]]] = deque()
    for moves, posts, reductions in steps:
        if len(flying) == lanes:
            _land(*flying.popleft())
        for call, arguments in moves:
            call(*arguments)
        flying.append(([post(*arguments) for post, arguments in posts], reductions))
    for one in flying:
        _land(*one)


def _land(requests: list[MPI.Request], reductions: list[Call]) -> None:
    MPI.Request.Waitall(requests)
    for call, arguments in reductions:
        call(*arguments)


def _reductions(step: Step, areas: Mapping[int, Area], op: Any, alone: MPI.Intracomm) -> list[Call]:
    return [call for one in step.reductions for call in _reduction(one, areas, op, alone)]


def _reduction(one: Reduction, areas: Mapping[int, Area], op: Any, alone: MPI.Intracomm) -> list[Call]:
    """MPI computes inout = in op inout: where order counts, what comes from lower ranks has to be ``in``."""
    source, target = areas[one.buffer], areas[one.held_buffer]
    new, held = source.message(one.begin, one.length), target.message(one.held_begin, one.length)
    if one.precedes or op.Is_commutative():
        return [(op.Reduce_local, (new, held))]
    begin, to, length = (np.array([number]) for number in (one.begin, one.held_begin, one.length))
    back = Moves(one.buffer, begin, one.held_buffer, to, length)
    return [(op.Reduce_local, (held, new)), *source.moves(target, back, alone)]
