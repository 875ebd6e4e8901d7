"""Programs one after another in one job, because its start takes longer than they do: ``several.py PROGRAM...``.

Rank 0 prints, as JSON, what each program printed on each rank.
"""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

from mpi4py import MPI

printed = {}
for program in sys.argv[1:]:
    sys.argv, sys.path[0] = [program], str(Path(program).parent)
    print(program, file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed[program]:
        runpy.run_path(program, run_name="__main__")
everyone = MPI.COMM_WORLD.gather({program: text.getvalue() for program, text in printed.items()})
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(everyone))
