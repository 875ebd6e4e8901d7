"""The watchdog of ``TOPOMPI_CHECK``: a thread that prints in which collective call this rank has waited long."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["call_site", "watching"]

PACKAGE = str(Path(__file__).resolve().parents[1])


@dataclass(eq=False)
class _Call:
    """A call that has not returned.

    :param says: function that returns a description of the call.
    :param begin: begin of the call, in seconds of the monotonic clock.
    :param due: time of the next line about it, in seconds of the monotonic clock.
    """

    says: Callable[[], str]
    begin: float
    due: float


_calls: set[_Call] = set()
_changed = threading.Condition()
_thread: threading.Thread | None = None


@contextmanager
def watching(seconds: float, says: Callable[[], str]) -> Iterator[None]:
    """Watch the body of the ``with``: print a line to standard error after ``seconds``, and whenever that time doubles.

    :param seconds: seconds until the first line, above 0.
    :param says: function that returns a description of the call; another thread may call it.
    """
    now = time.monotonic()
    call = _Call(says, now, now + seconds)
    with _changed:
        _start()
        _calls.add(call)
        _changed.notify()
    try:
        yield
    finally:
        with _changed:
            _calls.discard(call)


def call_site() -> str:
    """File and line of the program from which topompi was called, as ``name:line``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(PACKAGE) or _is_ours(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_ours(name: str) -> bool:
    """Whether a frame's file name is that of topompi's methods compiled from text, or of the module ``contextlib``."""
    return name.startswith("<") or os.path.basename(name) == "contextlib.py"


def _start() -> None:
    """Start the thread that watches the calls, unless it runs already."""
    global _thread
    if _thread is None or not _thread.is_alive():  # a forked process has no copy of the thread
        _thread = threading.Thread(target=_look, name="topompi watchdog", daemon=True)
        _thread.start()


def _look() -> None:
    with _changed:
        while True:
            now = time.monotonic()
            for call in [one for one in _calls if one.due <= now]:
                waited = now - call.begin
                call.due = now + waited
                print(f"topompi: {call.says()}, for {waited:.0f} s", file=sys.stderr, flush=True)
            _changed.wait(min((call.due for call in _calls), default=now + 3600) - now)
