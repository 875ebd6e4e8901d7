"""Work beside a daemon's event loop: the administrator's command, and a function in a thread."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from ...visible import last_first

__all__ = ["in_thread", "run_command"]

T = TypeVar("T")


async def run_command(command: Sequence[str], seconds: float) -> str:
    """Run a command; return "" if it exits with code 0, otherwise an error message.

    The command gets no input, and its standard output is discarded. It is killed at its time limit, or when the daemon
    ends.

    :param command: the program and its arguments.
    :param seconds: time limit in seconds.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        return f"{command[0]}: expecting a program, got: {error.strerror or error}"
    try:
        _, words = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{command[0]}: expecting an end within {seconds:g} seconds, got none"
    finally:
        if process.returncode is None:  # this task was cancelled, because the daemon ends
            process.kill()
    return (
        f"{command[0]}: expecting exit code 0, got {process.returncode}: {last_first(words)}"
        if process.returncode
        else ""
    )


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
