"""The administrator's command that a daemon runs."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence

from ...visible import last_first

__all__ = ["run_command"]


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
