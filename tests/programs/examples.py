"""Run by the tests of examples under mpirun: one program again and again in one job, each time with other options.

``examples.py PROGRAM.py -- OPTIONS... -- OPTIONS...``. A job starts its ranks once: their imports take longer than the
runs.
"""

import runpy
import sys
from itertools import groupby

program, *words = sys.argv[1:]
for separator, options in groupby(words, lambda word: word == "--"):
    if not separator:
        sys.argv = [program, *options]
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise
