"""Makers of point-to-point methods that count, during a recording, the messages that they send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import ndarray

from ..execution.buffers import block
from .counting import Counters, Group
from .requests import counted

__all__ = [
    "EXCHANGES",
    "OBJECT_SENDS",
    "SENDS",
    "GroupOf",
    "Method",
    "bytes_of",
    "exchanging",
    "group_for",
    "length_of",
    "sending",
    "sending_later",
    "sending_object",
]

Method = Callable[..., Any]
GroupOf = Callable[[Any], Group]

SENDS = [f"{mode}send" for mode in ("", "b", "s", "r", "i", "ib", "is", "ir")]
OBJECT_SENDS = ("send", "bsend", "ssend", "isend", "ibsend", "issend")
EXCHANGES = ("Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace", "sendrecv")


def bytes_of(message: Any) -> int:
    """Bytes of a message in any of mpi4py's forms; 0 if topompi cannot read it, though the MPI library may send it."""
    try:
        return block(message, readonly=True).size
    except Exception:
        return 0


def length_of(value: Any) -> int:
    """Bytes of an object as mpi4py sends it, pickled."""
    return len(MPI.pickle.dumps(value))


# The methods below repeat the lines that count, because a call of a common function would add a quarter to the cost.
def sending(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    """Make a send method that counts its messages.

    :param native: the method that sends.
    :param counters: the counters of the recording.
    :param group_of: function of a communicator, which returns its ranks as peers in these counters.
    """
    messages, volume = counters.table("E")

    def send(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        done = native(self, buf, dest, tag)
        if dest >= 0:
            group = getattr(self, "_group", None)
            if group is None or group.owner is not counters:
                group = group_of(self)
            unit = group.units[dest]
            messages[unit] += 1
            volume[unit] += buf.nbytes if type(buf) is ndarray else bytes_of(buf)
        return done

    return send


def sending_object(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    """Make a counting send method for objects, which pickles the object itself, as mpi4py does, to know its bytes.

    :param native: the method that sends.
    :param counters: the counters of the recording.
    :param group_of: function of a communicator, which returns its ranks as peers in these counters.
    """
    buffers = getattr(MPI.Comm, native.__name__.capitalize())
    messages, volume = counters.table("E")

    def send(self: Any, obj: Any, dest: int, tag: int = 0) -> Any:
        if dest < 0:
            return native(self, obj, dest, tag)
        data = MPI.pickle.dumps(obj)
        done = buffers(self, [data, MPI.BYTE], dest, tag)
        group = getattr(self, "_group", None)
        if group is None or group.owner is not counters:
            group = group_of(self)
        unit = group.units[dest]
        messages[unit] += 1
        volume[unit] += len(data)
        return done

    return send


def exchanging(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    """Make a method that sends and receives in one call, and counts the sent message.

    :param native: the method that sends and receives.
    :param counters: the counters of the recording.
    :param group_of: function of a communicator, which returns its ranks as peers in these counters.
    """
    messages, volume = counters.table("E")
    objects = native.__name__ == "sendrecv"
    first = "sendobj" if objects else "buf" if native.__name__.endswith("_replace") else "sendbuf"
    size_of = length_of if objects else bytes_of

    def exchange(self: Any, *args: Any, **named: Any) -> Any:
        message = args[0] if args else named.get(first)
        dest = args[1] if len(args) > 1 else named.get("dest", MPI.PROC_NULL)
        done = native(self, *args, **named)
        if dest >= 0:
            group = getattr(self, "_group", None)
            if group is None or group.owner is not counters:
                group = group_of(self)
            unit = group.units[dest]
            messages[unit] += 1
            volume[unit] += message.nbytes if type(message) is ndarray and not objects else size_of(message)
        return done

    return exchange


def group_for(comm: Any, counters: Counters, group_of: GroupOf) -> Group:
    """The ranks of a communicator as peers in some counters, made at the first use.

    :param comm: the communicator, which keeps the group.
    :param counters: the counters of the active recording.
    :param group_of: function that makes the group.
    """
    group = getattr(comm, "_group", None)
    return group if group is not None and group.owner is counters else group_of(comm)


def sending_later(native: Method, counters: Counters, group_of: GroupOf) -> Method:
    """Make a method for persistent sends whose requests count a message at each start.

    :param native: the method that makes the request.
    :param counters: the counters of the recording.
    :param group_of: function of a communicator, which returns its ranks as peers in these counters.
    """

    def prepare(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        request = native(self, buf, dest, tag)
        if dest < 0:
            return request
        units, volume = group_for(self, counters, group_of)[np.array([dest])], np.array([bytes_of(buf)])
        return counted(request, lambda: counters.add("E", units, volume))

    return prepare
