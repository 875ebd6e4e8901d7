"""``mpirun -n N python -m osu_like_bench BENCHMARK ...``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
