"""The answers by which calls that are the MPI library's go to it at once, without Python."""

import json

import pytest

from tests.support import run_mpi

PROGRAM = """
import numpy as np
from mpi4py import MPI
from topompi.mpi.preload import calls
world = MPI.COMM_WORLD.handle
known = np.frombuffer(calls.start(world, int(MPI.IN_PLACE) % 2**64), np.int64).reshape(-1, 2)
words = {int(handle): int(size) for handle, size in known}
mask = 256**MPI._sizeof(MPI.COMM_WORLD) - 1
double, total = MPI.DOUBLE.handle & mask, MPI.SUM.handle & mask
assert (words[double], words[total]) == (8, -1)

def bcast(count, comm=world):
    data = np.ones(max(count, 1))
    a = [data.ctypes.data, count & 0xFFFFFFFF, double, 0, comm, 0, 0, 0, 0]
    return calls.call(calls.NAMES.index("Bcast"), comm & mask, 8 * count, 1, a) >> 32

print("answers", *[bcast(count) for count in (1, 2, 1, 4000, 4000)], flush=True)
"""

CLASS, METHOD, ALL = 1, 2, 4


@pytest.mark.parametrize(
    ("setting", "answers"),
    [
        ({"TOPOMPI_RULES": "short"}, [CLASS, CLASS, CLASS, 0, 0]),
        ({"TOPOMPI_RULES": "never"}, [METHOD] * 5),
        ({"TOPOMPI_RULES": "short", "TOPOMPI_VERBOSE": "1"}, [0] * 5),
        ({"TOPOMPI_RULES": "short", "TOPOMPI_CHECK": "1"}, [0] * 5),
        ({"TOPOMPI_TOPOLOGY": "", "TOPOMPI_HOSTS": ""}, [ALL] * 5),
    ],
)
def test_calls_stay_the_librarys_only_if_their_class_is_decided_and_nobody_watches(tmp_path, setting, answers):
    native, planned = {"methods": ["Bcast"], "algorithm": "native"}, {"collective": "bcast", "algorithm": "binomial"}
    for name, rules in {"short": [{**native, "bytes": [1, 64]}, planned], "never": [native]}.items():
        (tmp_path / name).write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": rules}))
    env = {"TOPOMPI_TOPOLOGY": "xgft:2,2;1,1", "TOPOMPI_HOSTS": "h[0000,0003]", **setting}
    if "TOPOMPI_RULES" in setting:
        env["TOPOMPI_RULES"] = str(tmp_path / setting["TOPOMPI_RULES"])
    done = run_mpi(2, "-m", "mpi4py", "-c", PROGRAM, env=env)
    assert done.stdout.count(f"answers {' '.join(map(str, answers))}\n") == 2, done.stdout + done.stderr[-2000:]
