"""Makers of point-to-point methods that count, during a recording, the messages that they send."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import ndarray

from ..communicator.handle import kept
from ..execution.buffers import block
from .counted import Method, after, timed
from .counting import CountedRanks, Recorded, TrafficCounters
from .requests import counted

__all__ = [
    "EXCHANGES",
    "OBJECT_SENDS",
    "SENDS",
    "GroupOf",
    "bytes_of",
    "dense_sizes",
    "exchanging_objects",
    "group_for",
    "length_of",
    "quick_bytes",
    "sending",
    "sending_later",
    "sending_object",
]

GroupOf = Callable[[Any], CountedRanks]

SENDS = [f"{mode}send" for mode in ("", "b", "s", "r", "i", "ib", "is", "ir")]
OBJECT_SENDS = ("send", "bsend", "ssend", "isend", "ibsend", "issend")
EXCHANGES = ("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace")


def bytes_of(message: object) -> int:
    """Bytes of a message given to mpi4py, for example a buffer or ``[buffer, count, datatype]``; 0 if it is unreadable.

    The MPI library may be able to send a message that topompi cannot read.
    """
    if (known := quick_bytes(message)) is not None:
        return known
    try:
        return block(message, readonly=True).size
    except Exception:
        return 0


def quick_bytes(message: object) -> int | None:
    """Bytes of a message that is a numpy array, or a list of an array and one of MPI's predefined datatypes, else None.

    The result is also None if the array does not contain a whole number of elements of the datatype.
    """
    if type(message) is ndarray:
        return message.nbytes
    if type(message) is list and len(message) == 2 and type(message[0]) is ndarray:
        size, whole = dense_sizes().get(id(message[1]), 0), message[0].nbytes
        return whole if size and whole % size == 0 else None
    return None


@cache
def dense_sizes() -> dict[int, int]:
    """Bytes of an element of each predefined MPI datatype without gaps, by the ``id`` of mpi4py's object.

    The objects exist until the program ends, so that no other object gets their ``id``. MPI must be initialised.
    """
    own = [one for one in vars(MPI).values() if isinstance(one, MPI.Datatype) and one != MPI.DATATYPE_NULL]
    return {id(one): one.Get_size() for one in own if one.Get_size() and one.Get_extent() == (0, one.Get_size())}


def length_of(value: object) -> int:
    """Number of bytes of an object after pickling, which is how mpi4py sends it."""
    return len(MPI.pickle.dumps(value))


def sending(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a method that sends a buffer (``Send``) or also receives one (``Sendrecv``), and counts the sent message.

    :param native: the method that sends.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """
    messages, volume = counters.table("E")
    exchanges = "sendrecv" in native.__name__.lower() and not native.__name__.endswith("_replace")
    first = "sendbuf" if exchanges else "buf"

    def count(self: Any, *args: Any, **named: Any) -> None:
        dest = args[1] if len(args) > 1 else named["dest"]
        if dest >= 0 and (unit := group_for(self, counters, group_of).units[dest]) >= 0:
            messages[unit] += 1
            volume[unit] += bytes_of(args[0] if args else named[first])

    return after(native, count, counters)


def sending_object(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a method that sends a Python object and counts the message.

    The method pickles the object, as mpi4py would do, and sends the pickled bytes as a buffer, so that it knows their
    number without pickling twice.

    :param native: mpi4py's method for objects, for example ``send``.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """
    buffers = getattr(MPI.Comm, native.__name__.capitalize())
    messages, volume = counters.table("E")

    def send(self: object, obj: object, dest: int, tag: int = 0) -> object:
        if dest < 0:
            return native(self, obj, dest, tag)
        data = MPI.pickle.dumps(obj)
        done = buffers(self, [data, MPI.BYTE], dest, tag)
        if (unit := group_for(self, counters, group_of).units[dest]) >= 0:
            messages[unit] += 1
            volume[unit] += len(data)
        return done

    return send


def exchanging_objects(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a method that sends and receives Python objects, and counts the sent message.

    The sent object is pickled twice: by mpi4py to send it, and here to count its bytes.

    :param native: mpi4py's ``sendrecv``.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """
    messages, volume = counters.table("E")

    def count(self: object, sendobj: object, dest: int, *_: object, **__: object) -> None:
        if dest >= 0 and (unit := group_for(self, counters, group_of).units[dest]) >= 0:
            messages[unit] += 1
            volume[unit] += length_of(sendobj)

    return after(native, count, counters)


def group_for(comm: object, counters: TrafficCounters, group_of: GroupOf) -> CountedRanks:
    """Return a communicator's `Group`: the one stored with it if it belongs to these counters, else a new one.

    :param comm: the communicator.
    :param counters: the counters of the active recording.
    :param group_of: function that makes the group of a communicator and stores it with the communicator.
    """
    recorded: Recorded | None = kept(comm, "_topompi_recorded")
    return recorded.group if recorded is not None and recorded.group.owner is counters else group_of(comm)


def sending_later(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a method that returns a persistent send request, which counts a message whenever it is started.

    :param native: the method that makes the request.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """

    def prepare(self: object, buf: object, dest: int, tag: int = 0) -> object:
        request = native(self, buf, dest, tag)
        if dest < 0:
            return request
        units, volume = group_for(self, counters, group_of)[np.array([dest])], np.array([bytes_of(buf)])
        return counted(request, timed(lambda: counters.add("E", units, volume), counters))

    return prepare
