"""A command of the administrator's that a daemon runs."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence

__all__ = ["run_command"]


async def run_command(command: Sequence[str], seconds: float) -> str:
    """Run a command; the text of its error, or an empty one if it succeeded.

    It reads nothing, what it prints is thrown away, and it is killed when its time is over or the daemon ends.

    :param command: the program and its arguments.
    :param seconds: seconds that it may take.
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
        if process.returncode is None:  # the daemon ends
            process.kill()
    last = words.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
    return f"{command[0]}: expecting exit code 0, got {process.returncode}: {last[:200]}" if process.returncode else ""
