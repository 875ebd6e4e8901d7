"""Work in a thread that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """The result of some work, done beside the event loop; what it raises is raised here.

    :param work: that may outlast the event loop: an executor would wait for it at the end of the process.
    """
    done: Future[T] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # the caller was cancelled
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)
