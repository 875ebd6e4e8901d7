"""The choice for the neighbourhood collectives of a communicator, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...schedules.sparse.exchange import Exchange
from ..execution.buffers import DeviceMemoryError
from ..execution.compiled import COMPILED
from ..execution.movable import Movables
from ..execution.native import NativeIntracomm
from ..execution.neighbours.arguments import Side, read
from ..execution.neighbours.binding import bound, resumable, scratch_of
from ..execution.neighbours.meeting import Ends, meet
from ..execution.program import run_all
from ..execution.requests import PersistentRequest, PlanRequest, after
from ..execution.specs import NATIVE, NEIGHBOUR_CALLS, NeighbourSpec
from ..execution.timing import timed
from ..prediction.neighbours import GAIN, GroupPlace, Prices, on_host, seconds_of, works_of
from ..prediction.predictor import Predictor
from ..prediction.scope import unmodelled
from ..selection.choice import Choice
from ..selection.trial import Contest, Trial
from .choosing import ON_DEVICE, UNPLANNED, YOUNG

if TYPE_CHECKING:
    from .state import State

__all__ = ["Neighbours"]

Integers = NDArray[np.int64]
Sides = tuple[Side, Side]
Messages = tuple[object, object]  # the send and the receive message of a call

HOSTS, LEAVES = "hosts", "leaves"  # names of the algorithms, after the groups between which blocks are carried
CHANNEL = 96  # number of the channel of all blocking calls of a communicator
# Numbers of the channels of non-blocking calls, which take turns: one that finds its channel in use by an earlier call
# begins after that call.
ASIDE = (86, 87, 88, 89)
PROGRAMS = 64  # maximum number of different calls whose programs are kept, blocking, and non-blocking
FORCED = Choice(NATIVE, "native: TOPOMPI_NEIGHBOURS")
NOT_ASIDE = Choice(NATIVE, "native: carriers run requests only if TOPOMPI_NEIGHBOURS says so")
ONE_THREAD = Choice(NATIVE, "native: MPI runs with less than MPI.THREAD_MULTIPLE, which requests by carriers need")
MANY = 64  # calls before carriers are given up if most calls make their messages anew
ANEW = Choice(NATIVE, "native: most calls have new sizes, and carriers would make their messages anew")
NO_COMPILER = "without a C compiler, each call would make its messages anew"
NO_GROUPS = Choice(NATIVE, "native: no host and no leaf switch of several has several ranks")


@dataclass(frozen=True, eq=False)
class _Settled:
    """The choice for the blocking allgathers, or alltoalls, of a communicator.

    :param choice: the algorithm, with the reason.
    :param exchange: this rank's part; None if the MPI library runs the calls.
    :param size: bytes of each outgoing edge for which the choice was made, shape (outgoing edges,).
    :param limit: bytes of the largest block that may be carried.
    :param scratch: scratch memory of all blocking calls; None if the MPI library runs them.
    :param threaded: whether carriers may run requests, because several threads of each rank may call MPI.
    :param trial: the trial that finds the choice; None if there is none.
    :param rivals: what each algorithm of the trial would do.
    """

    choice: Choice
    exchange: Exchange | None
    size: Integers
    limit: int
    scratch: Any = None
    threaded: bool = False
    trial: Trial | None = None
    rivals: Mapping[str, _Settled] = field(default_factory=dict)

    def outgrown(self, size: Integers) -> bool:
        """Whether a block that may be carried has outgrown the memory that was planned for it."""
        planned = np.where(self.size <= self.limit, self.size, 0)
        return bool(((size <= self.limit) & (size > planned)).any())


class Neighbours:
    """The neighbourhood collectives of one communicator.

    The plan of blocking calls has room for blocks of the size of its first call. Each block that fits into its room is
    carried, and each other goes directly: both of its ranks know its size, so that no call has to ask the others. At
    calls 1, 2, 4, 8 and so on the ranks ask each other whether blocks have outgrown their rooms, and plan again then.

    :param topology: the communicator with the graph.
    :param state: topompi's state of it.
    """

    def __init__(self, topology: MPI.Topocomm, state: State) -> None:
        self._state, self._ends = state, Ends.of(topology)
        self._leaves, self._comes = (one != MPI.PROC_NULL for one in (self._ends.destinations, self._ends.sources))
        self._calls = {True: 0, False: 0}
        self._made = {True: 0, False: 0}  # calls since the ranks last asked each other whose messages were made anew
        self._settled: dict[bool, _Settled] = {}
        self._prepared: dict[bool, _Settled] = {}
        self._inside: dict[str, MPI.Intracomm] = {}
        self._programs, self._requests = Movables(PROGRAMS), Movables(PROGRAMS)
        self._natively = {True: False, False: False}
        self._turn = 0
        self._latest: list[PlanRequest | None] = [None] * len(ASIDE)

    @cached_property
    def only(self) -> Choice | None:
        """The choice for all calls, None if it depends on the call; the same on all ranks."""
        state, word = self._state, self._state.common.policy.neighbours
        if word == NATIVE:
            return FORCED
        if not word and state.only is not None:
            return state.only
        unknown = "" if self._measures else unmodelled(state.interface)
        if not word and (why := unknown or ("" if COMPILED else NO_COMPILER)):
            return Choice(NATIVE, f"native: {why}")
        return None if self._candidates else NO_GROUPS

    @cached_property
    def _candidates(self) -> dict[str, GroupPlace]:
        """The groups between which blocks may be carried, by name of the algorithm."""
        interface, word = self._state.interface, self._state.common.policy.neighbours
        host = interface.rank_host.astype(np.int64)
        found = {HOSTS: host}
        if interface.host_routes is not None:
            leaf = interface.host_routes.leaf[host].astype(np.int64)
            found[LEAVES] = np.unique(np.where(leaf < 0, -1 - host, leaf), return_inverse=True)[1]
        several = {name: of for name, of in found.items() if 1 < int(of.max()) + 1 < len(of)}
        if self._measures and LEAVES in found and np.array_equal(found[LEAVES], host):
            several.pop(LEAVES, None)
        wanted = (HOSTS, LEAVES) if self._measures else (word or HOSTS,)
        return {name: GroupPlace(of, host) for name, of in several.items() if name in wanted}

    @cached_property
    def _measures(self) -> bool:
        """Whether blocking calls are timed to find the choice."""
        policy = self._state.common.policy
        return policy.measures and not policy.neighbours

    @cached_property
    def _prices(self) -> Prices | str:
        """The costs of messages, or the reason why nothing can be predicted; rank 0 tells them to all ranks."""

        def ask() -> Prices | str:
            predictor = Predictor(self._state.interface)
            if not (self._measures or self._state.common.policy.neighbours) and predictor.inapplicable:
                return predictor.inapplicable
            return Prices.of(predictor)

        state = self._state
        return state.common.answers.ask(state.groups.talks, lambda: "neighbours", ask, lambda _: True)

    def _inside_of(self, name: str) -> MPI.Intracomm:
        """The communicator of this rank's group; collective at its first use."""
        if name not in self._inside:
            groups, group_of = self._state.groups, self._candidates[name].group_of
            self._inside[name] = NativeIntracomm(groups.comm.Split(int(group_of[groups.rank]), groups.rank))
        return self._inside[name]

    def free(self) -> None:
        """Complete the non-blocking calls that are not complete, and free the communicators of groups; collective."""
        for request in self._latest:
            if request is not None and not request.ended:
                request.Wait()
        for comm in self._inside.values():
            comm.Free()
        self._inside.clear()

    def again(
        self, handle: MPI.Comm, name: str, shares: bool, native: Callable[..., None], arguments: Messages
    ) -> bool:
        """Run a blocking call in the way of an earlier one; False, and nothing is done, if that needs a look at it.

        There is little Python code in here, because all that it needs has left the caches since the last call.

        :param handle: the user's communicator.
        :param name: name of mpi4py's method.
        :param shares: ``NeighbourSpec.shares`` of the call.
        :param native: mpi4py's method.
        :param arguments: the send and the receive message.
        """
        number = self._calls[shares] + 1
        late = number - self._state.native_calls
        if late < 1 or late & (late - 1) == 0:  # the ranks ask each other
            return False
        if self._natively[shares]:
            self._calls[shares] = number
            native(handle, *arguments)
            return True
        found = self._programs.get(name, arguments)
        if found is None:
            return False
        self._calls[shares] = number
        found.program.run()
        return True

    def run(self, name: str, arguments: Messages, native: Callable[[], None]) -> Choice:
        """Run a blocking call; collective.

        :param name: name of mpi4py's method.
        :param arguments: the send and the receive message.
        :param native: function that lets the MPI library run the call.
        :raises Exception: the errors of the method itself. A rank whose arguments are wrong carries the other ranks'
            blocks before it raises the error.
        """
        spec = NEIGHBOUR_CALLS[name]
        number = self._calls[spec.shares] = self._calls[spec.shares] + 1
        number -= self._state.native_calls
        if number < 1:
            native()
            return YOUNG
        if self.only is not None:
            self._natively = dict.fromkeys(self._natively, self._state.quick)
            native()
            return self.only
        looks = number & (number - 1) == 0
        settled = self._settled.get(spec.shares)
        if not looks and settled is not None and settled.trial is None:
            if settled.exchange is None:
                native()
                return settled.choice
            if (found := self._programs.get(name, arguments)) is not None:
                found.program.run()
                return settled.choice
        try:
            sides, wrong = self._read(spec, arguments)
        except DeviceMemoryError:  # on all ranks or on none
            native()
            return ON_DEVICE
        if looks or settled is None:
            settled = self._look(spec, settled, sides, number)
        trial = self._go_on(spec, settled) if settled.trial is not None else None
        if trial is not None:
            choice = Choice(str(trial.next()), "trial")
            call = self._call(choice.algorithm, name, arguments, native, settled.rivals[choice.algorithm], sides)
            seconds = timed(self._state.groups.talks.meet, call)
        else:
            settled = self._settled[spec.shares]
            choice = settled.choice
            self._call("", name, arguments, native, settled, sides)()
        if wrong is not None:  # if the library runs the call, it has raised its own error
            raise wrong
        if trial is not None:
            trial.note(seconds)
        return choice

    def _call(
        self,
        rival: str,
        name: str,
        arguments: Messages,
        native: Callable[[], None],
        settled: _Settled,
        sides: Sides,
    ) -> Callable[[], None]:
        """The function that runs a blocking call, ready to run.

        :param rival: name of the algorithm in a trial; empty if there is none.
        :param name: name of mpi4py's method.
        :param arguments: the send and the receive message.
        :param native: function that lets the MPI library run the call.
        :param settled: what is to be done.
        :param sides: the memory of the messages.
        """
        if settled.exchange is None:
            return native
        key = (name, rival) if rival else name
        found = self._programs.get(key, arguments) if rival else None
        if found is not None:
            return found.program.run
        groups = self._state.groups
        self._made[NEIGHBOUR_CALLS[name].shares] += 1
        calls, program = bound(settled.exchange, *sides, groups, groups.channel(CHANNEL), settled.scratch)
        if program is not None:
            self._programs.put(key, arguments, program, settled.scratch)
        return partial(run_all, calls)

    def _go_on(self, spec: NeighbourSpec, settled: _Settled) -> Trial | None:
        """The trial, if the next call is part of it; None if it has ended, so that its verdict is the choice now."""
        trial = settled.trial
        assert trial is not None
        while trial.upcoming is None and trial.verdict is None:
            trial.close(self._state.groups.talks.largest(trial.times))
        if (verdict := trial.verdict) is None:
            return trial
        choice = Choice(verdict.algorithm, verdict.describe(), verdict.seconds)
        self._keep(spec, replace(settled.rivals[verdict.algorithm], choice=choice))
        return None

    def _keep(self, spec: NeighbourSpec, settled: _Settled) -> None:
        self._programs.clear()
        self._requests.clear()
        self._settled[spec.shares] = settled
        self._natively[spec.shares] = settled.exchange is None and settled.trial is None and self._state.quick

    def start(self, name: str, arguments: Messages) -> tuple[PlanRequest | None, Choice]:
        """Start a non-blocking call by the latest plan; None if the MPI library shall run it. Waits for no other rank.

        :param name: name of mpi4py's blocking method.
        :param arguments: the send and the receive message.
        :raises Exception: the errors of the method itself. A rank whose arguments are wrong carries the other ranks'
            blocks nevertheless.
        """
        spec = NEIGHBOUR_CALLS[name]
        if self.only is not None:
            return None, self.only
        if not self._state.common.policy.neighbours:
            return None, NOT_ASIDE
        settled = self._settled.get(spec.shares) or self._prepared.get(spec.shares)
        if settled is None:
            return None, UNPLANNED
        if settled.exchange is None:
            return None, settled.choice
        if not settled.threaded:
            return None, ONE_THREAD
        place, self._turn = self._turn, (self._turn + 1) % len(ASIDE)
        earlier = self._latest[place]
        busy = earlier is not None and not earlier.ended
        found = None if busy else self._requests.get((name, place), arguments)
        if found is not None:
            request = self._latest[place] = PlanRequest.of(found.kept, arguments)
            return request, settled.choice
        try:
            sides, wrong = self._read(spec, arguments)
        except DeviceMemoryError:
            self._turn = place
            return None, ON_DEVICE
        groups, first = self._state.groups, [after(earlier)] if earlier is not None and busy else []
        run, program = resumable(settled.exchange, *sides, groups, groups.channel(ASIDE[place]), first, lasting=False)
        request = self._latest[place] = PlanRequest.of(run, (arguments, sides))
        if wrong is not None:
            raise wrong
        if program is not None:
            self._requests.put((name, place), arguments, program, run)
        return request, settled.choice

    def prepare(self, name: str, arguments: Messages) -> tuple[PersistentRequest | None, Choice]:
        """A request for a call, to be started many times; None if the MPI library shall make it; collective.

        :param name: name of mpi4py's method, without ``_init``.
        :param arguments: the send and the receive message.
        """
        spec = NEIGHBOUR_CALLS[name]
        if self.only is not None:
            return None, self.only
        if not self._state.common.policy.neighbours:
            return None, NOT_ASIDE
        try:
            sides, wrong = self._read(spec, arguments)
        except DeviceMemoryError:
            return None, ON_DEVICE
        settled = self._prepared.get(spec.shares) or self._settled.get(spec.shares)
        size = self._sizes(sides)
        if settled is None or self._any(not np.array_equal(settled.size, size)):
            settled = self._prepared[spec.shares] = self._settle(spec, size)
            self._requests.clear()
        groups = self._state.groups
        if settled.exchange is None or not settled.threaded:
            return None, settled.choice if settled.exchange is None else ONE_THREAD
        run, _ = resumable(settled.exchange, *sides, groups, groups.new_channel(), lasting=True)
        if wrong is not None:
            raise wrong
        return PersistentRequest.of(run), settled.choice

    def latest(self, name: str) -> str:
        """The algorithm that ran the latest blocking call of a method."""
        shares = NEIGHBOUR_CALLS[name].shares
        settled = self._settled.get(shares)
        choice = self.only if settled is None else settled.choice
        young = self._calls[shares] <= self._state.native_calls
        return NATIVE if young or choice is None else choice.algorithm

    def explain(self, name: str) -> str:
        """The algorithm chosen for blocking calls of a method, and the reason, in words; empty before the choice."""
        settled = self._settled.get(NEIGHBOUR_CALLS[name].shares)
        choice = self.only if settled is None else settled.choice
        return "" if choice is None else f"{choice.algorithm}: {choice.reason}"

    def _read(self, spec: NeighbourSpec, arguments: Messages) -> tuple[Sides, Exception | None]:
        """The memory of a call, and the error of this rank's arguments; in this case all blocks are empty."""
        alone = self._state.groups.alone
        try:
            return (
                read(spec, arguments[0], self._leaves, alone, sends=True),
                read(spec, arguments[1], self._comes, alone, sends=False),
            ), None
        except DeviceMemoryError:
            raise
        except Exception as error:  # any error, because the other ranks do not know of it and wait for this rank
            return (Side.empty(len(self._leaves)), Side.empty(len(self._comes))), error

    def _look(self, spec: NeighbourSpec, settled: _Settled | None, sides: Sides, number: int) -> _Settled:
        """Choose and plan anew if that is necessary on any rank; collective.

        :param spec: the description of the call.
        :param settled: the choice so far; None if there is none.
        :param sides: the memory of the messages.
        :param number: number of the call, a power of two.
        """
        size = self._sizes(sides)
        if settled is not None:
            anew = number >= MANY and self._made[spec.shares] > number // 4
            outgrown, anew = self._state.groups.talks.largest(np.array([settled.outgrown(size), anew], dtype=np.int64))
            self._made[spec.shares] = 0
            if not outgrown:
                if anew and not self._state.common.policy.neighbours:
                    self._keep(spec, replace(settled, choice=ANEW, exchange=None))
                return self._settled[spec.shares]
            both = (size <= settled.limit) & (settled.size <= settled.limit)
            size = np.where(both, np.maximum(size, settled.size), size)
        self._keep(spec, self._settle(spec, size, tries=self._measures))
        return self._settled[spec.shares]

    def _sizes(self, sides: Sides) -> Integers:
        """Bytes of the block of each outgoing edge, 0 where it leads to no rank, shape (outgoing edges,)."""
        return np.where(self._leaves, sides[0].blocks.size, 0)

    def _any(self, here: bool) -> bool:
        """Whether something is true on any rank; collective."""
        return bool(self._state.groups.talks.largest(np.array([here], dtype=np.int64))[0])

    def _settle(self, spec: NeighbourSpec, size: Integers, *, tries: bool = False) -> _Settled:
        """The choice for blocks of given sizes, and this rank's part; collective.

        :param spec: the description of the call.
        :param size: bytes of the block of each outgoing edge, shape (outgoing edges,).
        :param tries: whether a trial shall find the choice.
        """
        prices = self._prices
        if isinstance(prices, str):
            return _Settled(Choice(NATIVE, f"native: {prices}"), None, size, 0)
        planned = {name: self._planned(name, place, spec, size, prices) for name, place in self._candidates.items()}
        if tries:
            native = _Settled(Choice(NATIVE, "trial"), None, size, max(one.limit for one, _ in planned.values()))
            rivals = {NATIVE: native, **{name: one for name, (one, _) in planned.items()}}
            return replace(native, trial=Trial(Contest(tuple(rivals))), rivals=rivals)
        best, (ratio, library) = max(planned.values(), key=lambda one: one[1])
        if ratio < GAIN and not self._state.common.policy.neighbours:
            says = f"native: by {best.choice.algorithm} {_ratio(ratio, library)}"
            return _Settled(Choice(NATIVE, says, library), None, size, best.limit)
        return best

    def _planned(
        self, name: str, place: GroupPlace, spec: NeighbourSpec, size: Integers, prices: Prices
    ) -> tuple[_Settled, tuple[float, float]]:
        """The part of this rank by carriers, how many times as fast they are by the cost model, the library's seconds.

        :param name: name of the algorithm.
        :param place: the groups between which blocks are carried.
        :param spec: the description of the call.
        :param size: bytes of the block of each outgoing edge, shape (outgoing edges,).
        :param prices: costs of messages.
        """
        began, groups, terms = perf_counter(), self._state.groups, prices.terms(place)
        inside = self._inside_of(name)
        exchange = meet(self._ends, groups, inside, place.group_of, size, terms, shares=spec.shares)
        works = np.array(inside.allgather(works_of(exchange, place, prices)))
        largest = groups.talks.largest(on_host(works, place.mates(groups.rank), inside.rank))
        library, ours = seconds_of(largest)
        ratio, messages = library / ours if ours else 1.0, largest[:2]  # without data ours is 0
        taken, gain = perf_counter() - began, library - ours
        repaid = f", which {ceil(taken / gain):,} calls repay" if gain > 0 else ""
        reason = (
            f"small blocks by carriers of {name}, {messages[1]:.0f} messages a rank at most in place of "
            f"{messages[0]:.0f}; cost model: {_ratio(ratio, library)}; planned in {1e3 * taken:.1f} ms{repaid}"
        )
        scratch, threaded = scratch_of(exchange.scratch), bool(self._state.common.policy.neighbours) and groups.threaded
        return _Settled(Choice(name, reason, ours), exchange, size, terms.limit, scratch, threaded), (ratio, library)


def _ratio(ratio: float, library: float) -> str:
    return f"{ratio:.2f}x as fast as a message per edge ({1e6 * library:,.0f} us)"
