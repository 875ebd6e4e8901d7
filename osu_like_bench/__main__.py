"""``mpirun -n N python -m osu_like_bench BENCHMARK ...``, or without mpirun ``compare A.json B.json``."""

import sys


def main() -> int:
    """Run the command line; comparing records starts no MPI, which a login node may not have."""
    if sys.argv[1:2] == ["compare"]:
        from .compare import main as compare

        return compare(sys.argv[2:])
    from .cli import main as bench

    return bench()


if __name__ == "__main__":
    sys.exit(main())
