"""Counting of the collective calls of topompi's communicators, as a program's progress for the shutter."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..execution.specs import CALLS
from .collectives import Collectives

__all__ = ["count_calls"]

_wrapped: list[str] = []


def count_calls(count: Callable[[], None]) -> None:
    """Let each blocking collective on buffers call a function first. Later calls of ``count_calls`` do nothing.

    :param count: the function, which counts one call.
    """
    if not _wrapped:
        for name in CALLS:
            setattr(Collectives, name, _counting(getattr(Collectives, name), count))
            _wrapped.append(name)


def _counting(method: Callable[..., None], count: Callable[[], None]) -> Callable[..., None]:
    @wraps(method)
    def call(comm: Collectives, *arguments: Any, **named: Any) -> None:
        count()
        method(comm, *arguments, **named)

    return call
