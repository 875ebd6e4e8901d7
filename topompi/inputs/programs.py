"""Runs of other programs, with a time limit, and errors with their own words."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from ..errors import SourceError, TopompiError
from ..visible import last_first

__all__ = ["run_program"]


def run_program(
    command: Sequence[str],
    wanted: str,
    seconds: float,
    error: type[TopompiError] = SourceError,
    *,
    told: bytes = b"",
    environment: Mapping[str, str] | None = None,
    output: IO[bytes] | int = subprocess.PIPE,
    check: bool = True,
    option: str = "",
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, and return what it printed.

    :param command: program and arguments.
    :param wanted: expected output, in words, for errors.
    :param seconds: time limit in seconds.
    :param error: class of the error that is raised.
    :param told: bytes for the program's standard input.
    :param environment: variables beside those of this process.
    :param output: file that receives standard output; by default the result has it.
    :param check: whether an exit code other than 0 is an error. It also is if a program prints nothing but errors.
    :param option: the user's option for the time limit, for errors.
    :raises TopompiError: ``error``, if the program is missing, exceeds the time limit or fails, with its own words.
    """
    name = os.path.basename(command[0])
    own = None if environment is None else {**os.environ, **environment}
    try:
        done = subprocess.run(
            command, input=told, stdout=output, stderr=subprocess.PIPE, timeout=seconds, check=False, env=own
        )
    except FileNotFoundError as problem:
        raise error(f"{name}: expecting {wanted}, got no {name} on this machine") from problem
    except subprocess.TimeoutExpired as problem:
        limit = f"{seconds:g} s{f' ({option})' if option else ''}"
        raise error(f"{name}: expecting an end within {limit}, got none") from problem
    except OSError as problem:
        raise error(f"{name}: expecting {wanted}, got: {problem.strerror or problem}") from problem
    if check and done.returncode:
        said = last_first(done.stderr if done.stderr.strip() else done.stdout or b"")
        raise error(f"{name}: expecting {wanted}, got exit code {done.returncode}: {said}")
    # scontrol ends with 0 after some of its failures.
    if check and done.stdout == b"" and b"error" in done.stderr:
        raise error(f"{name}: expecting {wanted}, got: {last_first(done.stderr)}")
    return done
