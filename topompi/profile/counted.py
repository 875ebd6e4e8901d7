"""Methods that run a call and then count it: in C if the extension ``_counted`` was compiled, else in Python."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from mpi4py import MPI

from .counting import Counters

try:
    from ._counted import Counted
except ImportError:  # topompi was installed without a compiler
    Counted = None  # type: ignore[assignment]

__all__ = ["Method", "after", "counted_here", "dense_sizes", "timed"]

Method = Callable[..., Any]


@cache
def dense_sizes() -> dict[int, int]:
    """Bytes of an element of each predefined MPI datatype without gaps, by the ``id`` of mpi4py's object.

    The objects exist until the program ends, so that no other object gets their ``id``. MPI must be initialised.
    """
    own = [one for one in vars(MPI).values() if isinstance(one, MPI.Datatype) and one != MPI.DATATYPE_NULL]
    return {id(one): one.Get_size() for one in own if one.Get_size() and one.Get_extent() == (0, one.Get_size())}


def timed(count: Method, counters: Counters) -> Method:
    """Make a function that calls ``count``, and adds 1 call and its seconds to the counters' ``slow_...`` attributes.

    :param count: the function that counts a call in Python.
    :param counters: the counters of the recording.
    """

    def timed_count(*args: Any, **named: Any) -> None:
        begin = perf_counter()
        count(*args, **named)
        counters.slow_calls += 1
        counters.slow_seconds += perf_counter() - begin

    return timed_count


def after(native: Method, count: Method, counters: Counters) -> Method:
    """Make a method that runs a call, counts it in Python, and returns the call's result.

    :param native: the method that makes the call.
    :param count: a function of the same arguments that counts the call.
    :param counters: the counters of the recording.
    """
    count = timed(count, counters)

    def call(*args: Any, **named: Any) -> Any:
        done = native(*args, **named)
        count(*args, **named)
        return done

    return call


def counted_here(
    native: Method,
    count: Method,
    counters: Counters,
    parameters: tuple[str, ...],
    places: tuple[int, int],
    name: str | None = None,
    tables: tuple[array[int], array[int]] | tuple[()] = (),
) -> Method:
    """Make a method that runs a call and counts it, in C if the message is an array or an array with MPI's datatype.

    :param native: the method that makes the call.
    :param count: a function of the same arguments that counts any call.
    :param counters: the counters of the recording.
    :param parameters: names of the method's parameters.
    :param places: two positions in ``parameters``: of the message, and of the destination or root; -1 if there is none.
    :param name: name of the collective; None for a point-to-point method.
    :param tables: number of messages, and of bytes, sent to each peer, of shape (peers,) each, for a point-to-point
        method; empty for a collective.
    """
    if Counted is None:
        return after(native, count, counters)
    return Counted(native, timed(count, counters), counters, dense_sizes(), parameters, *places, name, *tables)
