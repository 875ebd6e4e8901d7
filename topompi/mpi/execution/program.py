"""A plan bound to buffers, as a list of mpi4py calls with their arguments, for one run or for many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from .areas import TAG, Area, Call
from .buffers import Specification
from .compiled import REVOKED, compiled
from .plan import Message, Moves, Plan, Reduction, Step

__all__ = ["Flight", "PlannedRun", "Resumable", "finish", "is_revoked", "message_of", "run_all", "wait_all"]

Post = Callable[..., MPI.Request]  # posts a message to or from a rank, under a tag
OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
CELL = 256  # bytes; Open MPI sends messages up to this size inline, in a cell of shared memory (btl_sm_max_inline_send)


def run_all(calls: Iterable[Call]) -> None:
    """Make the calls of a plan in order; if one fails, the calls after it are made nevertheless.

    :raises Exception: the error of the first call that failed, after all calls are made.
    """
    rest = iter(calls)
    try:
        for call, arguments in rest:
            call(*arguments)
    except BaseException as error:  # any error, also one that a signal handler raises
        finish(rest, error)
        raise


def is_revoked(error: BaseException) -> bool:
    """Whether an error means that a communicator is revoked, or that a process in it has failed."""
    return isinstance(error, MPI.Exception) and error.Get_error_class() in REVOKED


def finish(rest: Iterable[Call], error: BaseException) -> None:
    """Make the calls of a plan that come after a failed one, and ignore their errors.

    Other ranks wait for messages that this rank has yet to send, and messages that it does not receive would match the
    next plan. If a communicator is revoked, nothing is called: no rank waits any more, and this rank's data are
    incomplete.

    :param rest: the calls after the failed one.
    :param error: the error of the failed call.
    """
    if is_revoked(error):
        return
    for call, arguments in rest:
        with suppress(Exception):
            call(*arguments)


def wait_all(requests: list[MPI.Request]) -> None:
    """Complete requests; if some fail, complete the others nevertheless, and raise the first one's own error.

    ``MPI.Request.Waitall`` would only say that a status has an error, not that a communicator is revoked.
    """
    first: MPI.Exception | None = None
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            first = first or error
    if first is not None:
        raise first


class Resumable(NamedTuple):
    """One call of a run that can be interrupted and resumed.

    :param call: the function.
    :param arguments: arguments of the function.
    :param test: replacement for a call that waits: if the messages have arrived, it completes them and returns True,
        else it returns False; None if the call does not wait.
    """

    call: Callable[..., object]
    arguments: tuple[object, ...]
    test: Callable[[], bool] | None = None


class Flight:
    """Messages that are posted together, repeatedly.

    They are persistent requests, except for messages of up to ``CELL`` bytes in Open MPI: there a persistent send takes
    several times as long as a new non-blocking send, which alone is sent inline in a cell of shared memory.

    :ivar persistent: True if the messages are persistent requests.
    """

    def __init__(self, posts: list[Call], comm: MPI.Intracomm) -> None:
        self._posts = posts
        self.persistent = not (OPEN_MPI and all(_bytes_of(arguments[0]) <= CELL for _, arguments in posts))
        self._requests: list[Any] = []
        if self.persistent:
            start: dict[object, Callable[..., MPI.Prequest]] = {comm.Isend: comm.Send_init, comm.Irecv: comm.Recv_init}
            self._requests = [start[call](*arguments) for call, arguments in posts]

    def calls(self) -> tuple[Resumable, Resumable]:
        """The call that posts the messages, and the call that waits for them."""
        if self.persistent and len(self._requests) == 1:
            request = self._requests[0]
            return Resumable(request.Start, ()), Resumable(request.Wait, (), request.Test)
        if len(self._posts) == 1:
            return Resumable(self._post_one, self._posts[0]), Resumable(self._wait_one, (), self._test)
        return Resumable(self._post, ()), Resumable(self._wait, (), self._test)

    def _post_one(self, call: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self._requests = [call(*arguments)]

    def _wait_one(self) -> None:
        self._requests[0].Wait()

    def _post(self) -> None:
        if self.persistent:
            MPI.Prequest.Startall(self._requests)
        else:
            self._requests = [call(*arguments) for call, arguments in self._posts]

    def _wait(self) -> None:
        wait_all(self._requests)

    def _test(self) -> bool:
        return MPI.Request.Testall(self._requests)

    def free(self) -> None:
        """Free the persistent requests."""
        if self.persistent:
            for request in self._requests:
                request.Free()


def _bytes_of(message: Any) -> int:
    return int(message[1] * message[2].Get_size())


class PlannedRun(NamedTuple):
    """A plan bound to memory and communicators.

    :ivar plan: this rank's plan.
    :ivar areas: the memory of each buffer.
    :ivar comm: the communicator for messages of plans, which has no other messages.
    :ivar alone: a communicator of this rank only, which copies data with gaps.
    :ivar op: the operation of a reduction; None in other calls.
    :ivar tag: the tag of all messages.
    """

    plan: Plan
    areas: Mapping[int, Area]
    comm: MPI.Intracomm
    alone: MPI.Intracomm
    op: MPI.Op | None
    tag: int = TAG

    def calls(self) -> list[Call]:
        """The calls of one run: a single call that runs the whole plan in C, or, if C cannot run it, calls of mpi4py.

        With mpi4py, a step with at most one message each way is one blocking call; any other step is non-blocking calls
        and one wait.
        """
        plan, areas, comm, alone, op, tag = self
        if (run := compiled(plan, areas, comm, op, tag)) is not None:
            return [(run, ())]
        calls: list[Call] = []
        flying: dict[int, list[MPI.Request]] = {}  # requests of each step under way
        for step, begins in plan.turns():
            if begins:
                calls += _moves(step, areas, alone)
                posts = _posts(step, areas, comm.Irecv, comm.Isend, tag)
                calls += _blocking(posts, comm) if plan.window == 1 else [(_post, (posts, flying, id(step)))]
            else:
                calls += [(_land, (flying, id(step)))] if plan.window > 1 else []
                calls += _reductions(step, areas, op, alone)
        return calls

    def resumable_calls(self) -> tuple[list[Resumable], list[Flight]]:
        """The calls of a run that is repeated (one start and one wait per step), and the requests that they start.

        No other collective may use the tag, because others may run between the steps of this one.
        """
        plan, areas, comm, alone, op, tag = self
        calls: list[Resumable] = []
        flights: list[Flight] = []
        waits: dict[int, Resumable | None] = {}  # the waiting call of each step under way
        for step, begins in plan.turns():
            if not begins:
                wait = waits.pop(id(step))
                calls += [] if wait is None else [wait]
                calls += (Resumable(*call) for call in _reductions(step, areas, op, alone))
                continue
            calls += (Resumable(*call) for call in _moves(step, areas, alone))
            if posts := _posts(step, areas, comm.Irecv, comm.Isend, tag):
                flights.append(Flight(posts, comm))
                start, wait = flights[-1].calls()
                calls.append(start)
                waits[id(step)] = wait
            else:
                waits[id(step)] = None
        return calls, flights


def _posts(step: Step, areas: Mapping[int, Area], receive: Post, send: Post, tag: int = TAG) -> list[Call]:
    """The calls that post the receives and sends of a step."""
    return [
        (call, (message, one.peer, tag))
        for call, some in ((receive, step.receives), (send, step.sends))
        for one in some
        if (message := message_of(one, areas)) is not None
    ]


def message_of(one: Message, areas: Mapping[int, Area]) -> Specification | None:
    """A message of a plan as mpi4py takes it; None for units without data.

    :param one: the message; if it has no units, the result is an empty message.
    :param areas: the memory of each buffer.
    """
    if not one.length:
        return MPI.buffer.frombuffer(bytearray()), 0, MPI.BYTE
    return areas[one.buffer].message(one.begin, one.length)


def _moves(step: Step, areas: Mapping[int, Area], alone: MPI.Intracomm) -> list[Call]:
    return [call for some in step.moves for call in areas[some.source].moves(areas[some.destination], some, alone)]


def _blocking(posts: list[Call], comm: MPI.Intracomm) -> list[Call]:
    """The calls of a step that must end before the next step begins."""
    calls = [call for call, _ in posts]
    if calls == [comm.Irecv]:
        return [(comm.Recv, posts[0][1])]
    if calls == [comm.Isend]:
        return [(comm.Send, posts[0][1])]
    if calls == [comm.Irecv, comm.Isend]:
        return [(comm.Sendrecv, (*posts[1][1], *posts[0][1]))]
    return [(_complete, (posts,))] if posts else []


def _complete(posts: list[Call]) -> None:
    wait_all([post(*arguments) for post, arguments in posts])


def _post(posts: list[Call], flying: dict[int, list[MPI.Request]], step: int) -> None:
    """Post the messages of a step, and put the list of their requests into ``flying``, by the step's ``id``.

    The list is put there before the first message is posted, so that requests are waited for even if a later one fails.
    """
    requests: list[MPI.Request] = []
    flying[step] = requests
    for post, arguments in posts:
        requests.append(post(*arguments))


def _land(flying: dict[int, list[MPI.Request]], step: int) -> None:
    """Complete the messages of a step under way."""
    wait_all(flying.pop(step))


def _reductions(step: Step, areas: Mapping[int, Area], op: MPI.Op | None, alone: MPI.Intracomm) -> list[Call]:
    return [call for one in step.reductions for call in _reduction(one, areas, op, alone)]


def _reduction(one: Reduction, areas: Mapping[int, Area], op: MPI.Op | None, alone: MPI.Intracomm) -> list[Call]:
    """The calls that combine new data with held data, and put the result in the place of the held data.

    MPI computes ``inout = in op inout``: if order counts, ``in`` must hold the data of lower ranks. If these are the
    held data, the result lands in the buffer of the new data and is copied back.
    """
    source, target = areas[one.buffer], areas[one.held_buffer]
    assert op is not None  # a plan with reductions is of a call with an operation
    new, held = source.message(one.begin, one.length), target.message(one.held_begin, one.length)
    if one.precedes or op.Is_commutative():
        return [(op.Reduce_local, (new, held))]
    begin, to, length = (np.array([number]) for number in (one.begin, one.held_begin, one.length))
    back = Moves(one.buffer, begin, one.held_buffer, to, length)
    return [(op.Reduce_local, (held, new)), *source.moves(target, back, alone)]
