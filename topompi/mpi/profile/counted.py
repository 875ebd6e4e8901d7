"""Methods that run a call and then count it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from .counting import TrafficCounters

__all__ = ["Method", "after", "timed"]

Method = Callable[..., Any]


def timed(count: Method, counters: TrafficCounters) -> Method:
    """Make a function that calls ``count``, and adds 1 call and its seconds to the counters' ``timed_...`` attributes.

    :param count: the function that counts a call.
    :param counters: the counters of the recording.
    """

    def timed_count(*args: object, **named: object) -> None:
        begin = perf_counter()
        count(*args, **named)
        counters.timed_calls += 1
        counters.timed_seconds += perf_counter() - begin

    return timed_count


def after(native: Method, count: Method, counters: TrafficCounters) -> Method:
    """Make a method that runs a call, counts it, and returns the call's result.

    :param native: the method that makes the call.
    :param count: a function of the same arguments that counts the call.
    :param counters: the counters of the recording.
    """
    count = timed(count, counters)

    def call(*args: object, **named: object) -> object:
        done = native(*args, **named)
        count(*args, **named)
        return done

    return call
