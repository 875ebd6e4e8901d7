"""Run by test_bench.py under mpirun: all kernels with validation, then with phases that do nothing."""

import sys

from mpi4py import MPI

from osu_like_bench.cli import main
from osu_like_bench.kernels import running

WHERE = ["--topology", "XGFT(2; 2,2; 1,1)", "--hosts", "h[0000-0003]", "--place", "random:4"]
RUN = ["-m", "64:128", "-i", "3", "-x", "1", "-c", "--vs", "native", *WHERE]
KERNELS = {
    "stencil3d": ["--faces", "1,2,3"],
    "stencil4d": ["--periodic"],
    "fft3d": [],
    "p3dfft": ["--reorder", "topompi"],
    "pcg": ["--periodic"],
}


def measured(name: str, *more: str) -> int:
    return main([name, *RUN, *more])


def without(kind: type, *kernels: str) -> None:
    """Validation must fail, on all ranks, where a phase sends nothing."""
    call, kind.call = kind.call, lambda self: None
    for name in kernels:
        assert measured(name) == 1, f"{name} passed without {kind.__name__}"
    kind.call = call


for kernel, options in KERNELS.items():
    assert measured(kernel, *options) == 0, kernel
if MPI.COMM_WORLD.size > 1:
    without(running._Exchange, "stencil3d", "pcg")
    without(running._Transpose, "fft3d", "p3dfft")
    without(running._Sum, "pcg")
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("all done", file=sys.stderr)
