"""A call of a function in a thread that does not delay the end of the process."""

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
    """Run a function in a thread and return its result; an error that it raises is raised here.

    The thread is a daemon thread, because the threads of an executor delay the end of the process.

    :param work: function to run; it may still run when the event loop has ended.
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
