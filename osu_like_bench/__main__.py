"""The command line: a benchmark, started with mpirun, or a command (a key of ``COMMANDS``), started without mpirun."""

import sys

from .guard import require_own_code

if sys.argv[1:2] == ["emulate"]:  # runs as root, so that no module that another user could replace may be imported
    require_own_code("osu_like_bench")

import os
from importlib import import_module

import topompi
from topompi.cli.terminal import guard_streams
from topompi.errors import TopompiError
from topompi.inputs.extensions import require_mpi

__all__ = ["main"]

RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")  # launchers' variables for the number of a rank

COMMANDS = {  # by name, the module whose ``main`` takes the arguments after the name; none of them imports mpi4py
    "compare": "compare",
    "emulate": "emulate.cli",
    "simulate": "simulate.cli",
}


def main() -> int:
    """Run the command line; the commands in ``COMMANDS`` start no MPI, because a login node may have none."""
    guard_streams()
    command, words = sys.argv[1:2], sys.argv[1:]
    if "--version" in words[: [*words, "--"].index("--")]:
        if not any(os.environ.get(name, "0").strip("0") for name in RANK):
            print(f"osu_like_bench of topompi {topompi.__version__}")
        return 0
    if command == ["figures"]:
        print("osu_like_bench: figures is now, in a checkout: make studies SOURCE=subramoni", file=sys.stderr)
        return 2
    if command and command[0] in COMMANDS:
        module = import_module(f"{__package__}.{COMMANDS[command[0]]}")
        return int(module.main(sys.argv[2:]))
    try:
        require_mpi()
    except TopompiError as error:
        print(f"osu_like_bench: {error}", file=sys.stderr)
        return 1
    from .cli import main as bench

    return bench()


if __name__ == "__main__":
    sys.exit(main())
