"""The launcher ``topompi run PROGRAM``: runs a Python program with topompi's ``MPI.COMM_WORLD``, or a compiled one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

from ...inputs.extensions import NO_LIBRARY, library_hint
from ...visible import visible
from .program import outside, run
from .replacing import Replacing

__all__ = ["USAGE", "launch", "program_of", "start"]

USAGE = """\
usage: mpirun -n N topompi run [options] PROGRAM [arguments]
   or: mpirun -n N python -m topompi [options] script.py [arguments]
   or: mpirun -n N python -m topompi [options] -m module [arguments]
   or: mpirun -n N python -m topompi [options] -c code [arguments]
runs an MPI program, in Python (mpi4py) or compiled, whose collectives follow the network
options:
  --verbose           print at the end what each collective did, and why
  --check[=SECONDS]   verify that all ranks make the same calls; after so many (30) seconds say who waits in which
  --map GRAPH         re-order the ranks of MPI.COMM_WORLD for who sends how much to whom, as topompi map reads it
  --topology SOURCE   see `topompi topology show`; also --hosts LIST, --rules FILE, --tune MODE, --fallback WORD:
                      all stand for TOPOMPI_TOPOLOGY, TOPOMPI_HOSTS, TOPOMPI_RULES, ...
"""

FLAGS = {"--verbose": "TOPOMPI_VERBOSE", "--check": "TOPOMPI_CHECK"}
VALUES = {f"--{name}": f"TOPOMPI_{name.upper()}" for name in ("topology", "hosts", "rules", "tune", "fallback", "map")}
PROGRAMS = ("-m", "-c", "-")


def program_of(arguments: Sequence[str]) -> str:
    """The first word after the launcher's options: script, ``-m``, ``-c``, ``-``, or a command; "" if there is none."""
    rest, _ = _parse(arguments)
    return "" if not rest or (rest[0].startswith("-") and rest[0] not in PROGRAMS) else rest[0]


def start(arguments: list[str]) -> None:
    """Launch the program that ``topompi run`` names, or print the usage if ``--help`` stands there.

    :param arguments: the words after ``run``.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return
    program = program_of(arguments)
    if not program:
        _leave(f"run: expecting a program, got {visible(' '.join(arguments)) or 'none'}", 1)
    from ..preload.launching import compiled_program  # imported where it is used, because commands pass here, too

    if program not in PROGRAMS and not os.path.exists(program) and not compiled_program(program):
        _leave(f"{visible(program)}: no such file", 1)
    launch(arguments)


def launch(arguments: Sequence[str]) -> None:
    """Run a program as Python does; an exception on one rank ends all ranks, as under ``python -m mpi4py``.

    A program that is none for Python takes the place of this process.

    :param arguments: the launcher's options, the program, and the program's arguments.
    """
    rest, settings = _parse(arguments)
    if rest[0] in ("-m", "-c") and len(rest) < 2:
        _leave(f"expecting an argument after {rest[0]}", 1)
    os.environ.update(settings)
    if rest[0] not in PROGRAMS:
        _start_compiled(rest)
    if find_spec("mpi4py") is None:
        _leave(library_hint("mpi4py is not installed"), 1)
    replacing = Replacing(lambda why, speaks: _leave(why, 1, speaks))
    replacing.await_import()
    sound = False
    try:
        run(rest)
        sound = True
    except SystemExit as ended:
        sound = not ended.code
        _abort_at_exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        raise
    except BaseException as error:
        status = 128 + 2 if isinstance(error, KeyboardInterrupt) else 1  # as a shell reports SIGINT
        _abort_at_exit(status)
        _show(error)
        raise SystemExit(status) from None
    finally:
        replacing.close(joint=sound)  # a rank that failed ends all ranks, and must not wait for them


def _start_compiled(words: Sequence[str]) -> None:
    """Replace this process by the program of a command line, if the program is none for Python."""
    from ..preload import launching

    if path := launching.compiled_program(words[0]):
        if os.environ.get("TOPOMPI_MAP"):
            _leave(f"--map: expecting a Python program, whose ranks can be re-ordered, got {visible(words[0])}", 1)
        try:
            launching.start(path, words)
        except OSError as error:
            _leave(f"{visible(words[0])}: expecting a program that can be started, got {error.strerror}", 1)


def _abort_at_exit(status: int) -> None:
    """Let mpi4py abort all ranks when Python exits, if this rank failed."""
    module = sys.modules.get("mpi4py.MPI")
    if module is not None and status:
        module._set_abort_status(status)


def _show(error: BaseException) -> None:
    """Print an exception that the program did not catch, as Python does, without the launcher's frames."""
    for note in getattr(error, "__notes__", ()):
        if note.startswith(NO_LIBRARY):
            print(f"topompi: {note}", file=sys.stderr)
            return
    trace = outside(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _parse(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words after the launcher's options, and the environment variables that the options set."""
    rest, settings = list(arguments), {}
    while rest:
        name, equals, value = rest[0].partition("=")
        if name in FLAGS and not equals:
            settings[FLAGS[name]] = "1"
        elif name == "--check":
            settings[FLAGS[name]] = value
        elif name in VALUES and (equals or len(rest) > 1):
            settings[VALUES[name]] = value if equals else rest.pop(1)
        else:
            break
        del rest[0]
    return rest, settings


def _leave(why: str, status: int, speaks: bool = True) -> NoReturn:
    if speaks:
        print(f"topompi: {why}", file=sys.stderr)
    sys.exit(status)
