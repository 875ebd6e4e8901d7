"""A reader of OTF2 traces, as Score-P and other tracers write them; it needs the package otf2 (extra ``otf2``)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InterferenceError
from .collectives import ALGORITHMS, ALL_TO_EACH, MessageCount, add_collective
from .matching import program_of
from .operations import Message, Operations, Trace, columns_of

__all__ = ["read_otf2"]

Size = Callable[[float, float, int], float]  # bytes of one message from bytes sent, bytes received, and ranks
# Score-P counts the bytes of all messages of a rank, not of one.
_SENT: Size = lambda sent, received, ranks: sent or received  # noqa: E731 -- one of a table of formulas
_ALL_SENT: Size = lambda sent, received, ranks: sent / ranks  # noqa: E731
_ALL_RECEIVED: Size = lambda sent, received, ranks: received / ranks  # noqa: E731
SIZES: dict[str, tuple[str, Size]] = {
    "barrier": ("barrier", lambda sent, received, ranks: 0.0),
    "bcast": ("bcast", lambda sent, received, ranks: received or sent / ranks),
    **{name: (name, _SENT) for name in ("reduce", "allreduce", "scan", "exscan")},
    "reduce_scatter": ("reduce_scatter", lambda sent, received, ranks: received),
    "reduce_scatter_block": ("reduce_scatter", lambda sent, received, ranks: received),
    **dict.fromkeys(("alltoall", "alltoallv", "alltoallw"), ("alltoall", _ALL_SENT)),
    **dict.fromkeys(("allgather", "allgatherv"), ("allgather", _ALL_RECEIVED)),
    **dict.fromkeys(("gather", "gatherv"), ("gather", lambda sent, received, ranks: sent or received / ranks)),
    **dict.fromkeys(("scatter", "scatterv"), ("scatter", lambda sent, received, ranks: received or sent / ranks)),
}


def read_otf2(path: str | os.PathLike[str], *, algorithms: Mapping[str, str] = ALGORITHMS) -> Trace:
    """Read an OTF2 trace: messages, waits and collective calls as recorded, and the time between MPI calls as bursts.

    The messages of one blocking call are posted together. Collectives, with equal parts for all ranks, become the
    messages of textbook algorithms in their communicator.

    :param path: path of the anchor file, ``traces.otf2``.
    :param algorithms: algorithm of each collective.
    :raises InterferenceError: if the package otf2 is missing, the trace cannot be read, has no MPI processes, or a
        message has one end.
    Cost: about 20 us per event.
    """
    try:
        import otf2
    except ImportError as error:
        raise InterferenceError(
            f"{path}: expecting the package otf2 to read it, got none; pip install 'topompi[otf2]' brings it"
        ) from error
    try:
        with otf2.reader.open(str(path)) as reader:
            places, messages = _places(str(path), reader.definitions), MessageCount(str(path))
            about = places, reader.timer_resolution, algorithms, messages
            ranks = [_Rank(rank, *about) for rank in range(len(places))]
            for location, event in reader.events:
                if location in places:
                    ranks[places[location]].take(event)
    except otf2.error.TraceReaderError as error:
        raise InterferenceError(f"{path}: expecting an OTF2 trace, got {error}") from error
    for rank in ranks:
        rank.convert()
    columns = columns_of([rank.operations for rank in ranks])

    def place(row: int) -> str:
        return f"{path}: rank {columns['rank'][row]}, event {columns['line'][row]}"

    program, notes = program_of(str(path), len(ranks), columns, place)
    left_out = sum((rank.left_out for rank in ranks), Counter[str]())
    notes += [f"{count} calls of {name} left out" for name, count in sorted(left_out.items())]
    return Trace(program, tuple(notes))


def _places(path: str, definitions: Any) -> dict[Any, int]:
    """The rank of each location (process) of MPI_COMM_WORLD."""
    kinds = [(one, _name(one.group_type), _name(one.paradigm)) for one in definitions.groups]
    groups = [one for one, *kind in kinds if kind == ["COMM_LOCATIONS", "MPI"]]
    if not groups:
        raise InterferenceError(f"{path}: expecting MPI processes, got none")
    return {location: rank for rank, location in enumerate(groups[0].members)}


def _name(constant: Any) -> str:
    """The name of a constant of the package: ``MPI`` of ``Paradigm.MPI``."""
    return str(constant).rpartition(".")[2]


class _Rank:
    """The events of one process, and their conversion into operations.

    :param number: rank in MPI_COMM_WORLD.
    :param places: rank of each location.
    :param resolution: ticks of the clock per second.
    :param algorithms: algorithm of each collective.
    :param messages: number of messages of all ranks' collective calls so far.
    """

    def __init__(
        self,
        number: int,
        places: dict[Any, int],
        resolution: int,
        algorithms: Mapping[str, str],
        messages: MessageCount,
    ) -> None:
        self.number, self.places, self.resolution, self.algorithms = number, places, resolution, algorithms
        self.messages = messages
        self.events: list[Any] = []
        self.operations = Operations()
        self.left_out: Counter[str] = Counter()
        self._depth, self._free_at = 0, None
        self._receives: list[Message] = []
        self._sends: list[Message] = []
        self._steps: dict[int, int] = {}
        self._calls: Counter[Any] = Counter()

    def take(self, event: Any) -> None:
        """Keep an event until all are there, because a receive is known at its end and posted at its begin."""
        self.events.append(event)

    def convert(self) -> None:
        """Convert all events."""
        arrived: dict[int, Any] = {}
        coming: dict[int, Any] = {}  # the end of each posted receive, by the index of its begin
        for at in range(len(self.events) - 1, -1, -1):
            event, kind = self.events[at], type(self.events[at]).__name__
            if kind == "MpiIrecv":
                arrived[event.request_id] = event
            elif kind == "MpiIrecvRequest":
                coming[at] = arrived.pop(event.request_id, None)
        for at, event in enumerate(self.events):
            self._convert(at, event, coming.get(at))

    def _convert(self, at: int, event: Any, end: Any) -> None:
        kind = type(event).__name__
        if kind == "Enter" and self._is_mpi(event):
            self._compute(event.time, at)
            self._depth += 1
        elif kind == "Leave" and self._is_mpi(event):
            self._depth -= 1
            self._flush(at)
            self._free_at = event.time
        elif kind in ("MpiSend", "MpiRecv"):
            peer = event.receiver if kind == "MpiSend" else event.sender
            messages = self._sends if kind == "MpiSend" else self._receives
            messages.append(self._message(event, peer))
            if not self._depth:
                self._flush(at)
        elif kind == "MpiIsend":
            step = self.operations.post((), [self._message(event, event.receiver)], at)
            self._steps[event.request_id] = step
        elif kind == "MpiIrecvRequest" and end is not None:
            self._steps[event.request_id] = self.operations.post([self._message(end, end.sender)], (), at)
        elif kind in ("MpiIsendComplete", "MpiIrecv"):
            if event.request_id in self._steps:
                self.operations.wait(self._steps.pop(event.request_id))
        elif kind == "MpiCollectiveEnd":
            self._collective(event, at)

    def _is_mpi(self, event: Any) -> bool:
        return _name(event.region.paradigm) == "MPI"

    def _compute(self, time: int, at: int) -> None:
        """Add the burst since the last MPI call, if the process is in none."""
        if not self._depth and self._free_at is not None and time > self._free_at:
            self.operations.compute((time - self._free_at) / self.resolution, at)

    def _flush(self, at: int) -> None:
        """Post the messages of a blocking call together, and wait for them."""
        if not self._depth and (self._receives or self._sends):
            self.operations.wait(self.operations.post(self._receives, self._sends, at))
            self._receives, self._sends = [], []

    def _message(self, event: Any, peer: int) -> Message:
        world = self.places[event.communicator.location(peer)]
        return world, float(event.msg_length), int(event.msg_tag)

    def _collective(self, event: Any, at: int) -> None:
        name = _name(event.collective_op).lower()
        if name not in SIZES:
            self.left_out[name] += self.number == 0
            return
        collective, size = SIZES[name]
        members = [self.places[location] for location in event.communicator.group.members]
        call = self._calls[event.communicator]
        self._calls[event.communicator] += 1
        # A tag of this call alone, below 0: all members count their calls in a communicator alike.
        tag = -1 - call * 4096 - event.communicator._ref % 4096
        root = event.root if 0 <= event.root < len(members) else 0
        nbytes = size(float(event.size_sent), float(event.size_received), len(members))
        if len(members) > 1:
            self.messages.add(len(members), to_each=collective in ALL_TO_EACH)
            where = members.index(self.number), len(members), collective, nbytes, tag
            about: dict[str, Any] = {"root": root, "algorithms": self.algorithms, "line": at, "members": members}
            add_collective(self.operations, *where, **about)
