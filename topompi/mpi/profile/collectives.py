"""Makers of collective methods that count, during a recording, the bytes which calls ask the MPI library to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..communicator.handle import state_seen
from ..dispatch.calls import DEFAULTS
from ..execution.binding import Sent
from ..execution.buffers import block, is_in_place, vector
from ..execution.operands import typed
from ..execution.sizes import nbytes
from ..execution.specs import CallSpec, Form, Varying
from .counted import Method, after, timed
from .counting import CountedRanks, TrafficCounters
from .messages import GroupOf, group_for, length_of, quick_bytes
from .requests import counted

__all__ = ["collective", "collective_later", "of_objects", "parts"]

# Calls whose form on objects topompi runs, too: it is recorded under the name of the call on buffers.
OBJECTS = ("Barrier", "Bcast", "Scan", "Exscan")
IN_ALL_BLOCKS = ("Alltoall", "Allgather")  # `nbytes` gives one block's size; `counting.asked` takes all blocks' size


def collective(native: Method, counters: TrafficCounters, group_of: GroupOf, spec: CallSpec, name: str = "") -> Method:
    """Make a collective method, blocking or not, that counts the bytes which each call asks this rank to send.

    :param native: the method that makes the call.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    :param spec: the description of the call.
    :param name: name under which calls are recorded: a non-blocking method's own; by default the blocking call's.
    """
    at, root_at = _places(spec)
    name = name or spec.name

    def count(self: Any, *args: Any, **named: Any) -> None:
        group = group_for(self, counters, group_of)
        nbytes = None if named or not 0 <= at < len(args) else quick_bytes(args[at])
        if nbytes is None:
            _count(group, spec, args, named, ran(self), name)()
            return
        key = name, args[root_at] if 0 <= root_at < len(args) else 0, nbytes, ran(self)
        if key in group.calls:
            group.calls[key] += 1
        else:
            group.called(*key)

    return after(native, count, counters)


def _places(spec: CallSpec) -> tuple[int, int]:
    """Positions of two arguments, -1 if missing: the array that alone determines the call's size, and the root."""
    alone = {"Gatherv": 0, "Allgatherv": 0}.get(spec.name, spec.sized_by)
    return -1 if alone is None else alone, spec.parameters.index("root") if spec.rooted else -1


def ran(comm: object) -> Sent | None:
    """Take the messages that topompi sent for the communicator's latest call; None if the MPI library ran the call.

    A second query about the same call returns None, too.
    """
    state = state_seen(comm)
    if state is None or state.executor.ran is None:
        return None
    sent: Sent = state.executor.ran.sent
    state.executor.ran = None
    return sent


def _count(
    group: CountedRanks,
    spec: CallSpec,
    args: tuple[Any, ...],
    named: dict[str, Any],
    sent: Sent | None = None,
    name: str = "",
) -> Callable[[], None]:
    """Return a function that counts one call; a call whose arguments topompi cannot read counts with 0 bytes."""
    name = name or spec.name
    given = {**DEFAULTS, **dict(zip(spec.parameters, args, strict=False)), **named}
    arguments, root = tuple(given.get(one) for one in spec.parameters), int(given.get("root") or 0)
    try:
        if spec.counts is not Varying.EQUAL and spec.form is Form.ALLTOALL:
            return _count_parts(group, name, parts(spec, arguments, group.size), sent)
        if spec.name == "Scatterv":
            lengths = parts(spec, arguments, group.size) if group.rank == root else np.zeros(0, dtype=np.int64)
            return _count_parts(group, name, lengths, sent)
        size = _size(spec, arguments, group)
    except Exception:
        size = 0
    return lambda: group.called(name, root, size, sent)


def _size(spec: CallSpec, arguments: tuple[object, ...], group: CountedRanks) -> int:
    """Bytes of a call, as `counting.asked` takes them.

    They are the bytes of this rank's message, or, in alltoall and allgather, of all blocks together.
    """
    if spec.name in ("Gatherv", "Allgatherv"):
        if is_in_place(arguments[0]):
            return 0 if spec.rooted else int(parts(spec, arguments, group.size)[group.rank])
        return block(arguments[0], readonly=True).size
    size = nbytes(spec, arguments, group.size)
    return size * group.size if spec.name in IN_ALL_BLOCKS else size


def parts(spec: CallSpec, arguments: tuple[object, ...], number: int) -> NDArray[np.int64]:
    """Bytes of each block that a rank sends in a call with uneven blocks, for example Alltoallv, shape (number,).

    The blocks are in the send buffer, or, in an in-place call, in the receive buffer.

    :param spec: the description of the call.
    :param arguments: the arguments of the call, in the order of its parameters.
    :param number: number of blocks, one per rank, or per neighbour in a neighbourhood call.
    """
    message = arguments[1] if is_in_place(arguments[0]) else arguments[0]
    if spec.counts is not Varying.TYPED:
        return vector(message, number, readonly=True).sizes
    each = typed(message, number, True).messages
    return np.array([one[1] * one[2].Get_size() if one else 0 for one in each], dtype=np.int64)


def _count_parts(
    group: CountedRanks, name: str, lengths: NDArray[np.int64], sent: Sent | None = None
) -> Callable[[], None]:
    others = np.flatnonzero(np.arange(len(lengths)) != group.rank)
    units, volume = group[others], lengths[others]
    mean = int(lengths.sum()) // max(len(lengths), 1)

    def count() -> None:
        if sent is None:
            group.owner.add("C", units, volume)
        else:
            group.owner.add("I", group[sent.peers], sent.nbytes)
        group.owner.note(name, group.size, mean)

    return count


def collective_later(native: Method, counters: TrafficCounters, group_of: GroupOf, spec: CallSpec) -> Method:
    """Make a method that returns a persistent collective request, which counts a call whenever it is started.

    :param native: the method that makes the request.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    :param spec: the description of the call.
    """

    def prepare(self: object, *args: object, **named: object) -> object:
        request = native(self, *args, **named)
        sent = getattr(request, "sent", None)  # requests of topompi's plans have it, the MPI library's do not
        return counted(request, timed(_count(group_for(self, counters, group_of), spec, args, named, sent), counters))

    return prepare


def of_objects(native: Method, counters: TrafficCounters, group_of: GroupOf, spec: CallSpec) -> Method:
    """Make a collective method for Python objects (for example ``bcast``) that counts the bytes of the pickled objects.

    Each object is pickled twice: by mpi4py to send it, and here to count its bytes.

    :param native: the method that makes the call.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    :param spec: the description of the same call on buffers, for example of ``Bcast`` for ``bcast``.
    """
    parameters = tuple(one for one in spec.parameters if one != "recvbuf")
    name = spec.name if spec.name in OBJECTS else spec.name.lower()

    def count(self: Any, *args: Any, **named: Any) -> None:
        given = {**dict(zip(parameters, args, strict=False)), **named}
        value, root = next(iter(given.values()), ()), int(given.get("root", 0))
        group, sent = group_for(self, counters, group_of), ran(self)
        if sent is not None:
            group.called(name, root, length_of(value) if group.rank == root else 0, sent)
        elif spec.form is Form.ALLTOALL or (spec.form is Form.SCATTER and group.rank == root):
            _count_parts(group, name, np.array([length_of(one) for one in value], dtype=np.int64))()
        elif spec.form in (Form.NOTHING, Form.SCATTER) or (spec.form is Form.BROADCAST and group.rank != root):
            group.called(name, root, 0)
        else:
            group.called(name, root, length_of(value) * (group.size if spec.name in IN_ALL_BLOCKS else 1))

    return after(native, count, counters)
