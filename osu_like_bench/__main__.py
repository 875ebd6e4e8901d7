"""``mpirun -n N python -m osu_like_bench BENCHMARK ...``, or without mpirun one of ``COMMANDS``."""

import sys
from importlib import import_module

COMMANDS = {  # name -> module whose ``main`` takes the arguments after the name; none of them imports mpi4py
    "compare": "compare",
    "emulate": "emulate.cli",
    "figures": "figures.cli",
    "simulate": "simulate.cli",
}


def main() -> int:
    """Run the command line; a command of its own starts no MPI, which a login node may not have."""
    command = sys.argv[1:2]
    if command and command[0] in COMMANDS:
        module = import_module(f"{__package__}.{COMMANDS[command[0]]}")
        return int(module.main(sys.argv[2:]))
    from .cli import main as bench

    return bench()


if __name__ == "__main__":
    sys.exit(main())
