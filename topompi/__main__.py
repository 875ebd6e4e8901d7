"""``python -m topompi``: run an mpi4py program with topompi's communicators, or run a topompi command."""

import sys

from .guard import require_own_code

if not sys.flags.safe_path:  # without -P, the imports below could come from the current directory
    require_own_code("topompi", any_owner=True)

import os

from .mpi.launcher import USAGE, launch, program_of, start
from .visible import visible

__all__ = ["main"]


def main() -> None:
    """Launch the program that the command line names; if it names none, run it as a command."""
    arguments = sys.argv[1:]
    if arguments[:2] == ["topology", "query"]:
        from .cli.topology.query import ask_quickly

        code = ask_quickly(arguments[2:])
        if code is not None:
            sys.exit(code)
    if arguments[:1] == ["run"]:
        start(arguments[1:])
        return
    program = program_of(arguments)
    if program and (program[0] == "-" or (os.path.exists(program) and not _is_command(program))):
        launch(arguments)
        return
    if program.endswith(".py") or os.sep in program:
        print(f"topompi: {visible(program)}: no such file", file=sys.stderr)
        sys.exit(1)
    if arguments in (["--help"], ["-h"]):
        print(USAGE)
    from .cli import main as command_line

    command_line()


def _is_command(word: str) -> bool:
    if "." in word or "/" in word:
        return False  # a path: no need to load the commands
    from .cli.app import COMMANDS

    return word in COMMANDS


if __name__ == "__main__":
    main()
