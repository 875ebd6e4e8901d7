"""A table of the benchmarks by name, and the selection of a benchmark by a run's options."""

from __future__ import annotations

from dataclasses import replace

from mpi4py import MPI

from topompi.errors import BenchmarkError

from .communicators import on_root, rank_hosts
from .kernels import KERNELS, make_kernel
from .kernels.running import KernelBenchmark
from .operations import Operation
from .options import Options
from .overlapped import Overlapped
from .table import OPERATIONS

__all__ = ["BENCHMARKS", "REORDERS", "Benchmark", "benchmark_of"]

BENCHMARKS = (*OPERATIONS, *KERNELS)
REORDERS = ("topompi", "none")
Benchmark = type[Operation] | KernelBenchmark


def benchmark_of(options: Options, world: MPI.Intracomm) -> tuple[Options, Benchmark]:
    """Select the benchmark that the options name. Collective over ``world``.

    :returns: the options, in which a kernel's process grid is filled in, and the benchmark.
    :raises BenchmarkError: on all ranks, if an option is given that the benchmark does not have.
    """
    name = options.benchmark
    if name in OPERATIONS:
        given = {"grid": options.grid, "periodic": options.periodic, "faces": options.faces, "reorder": options.reorder}
        wrong = next((option for option, value in given.items() if value), None)
        if wrong is not None:
            raise BenchmarkError(f"--{wrong}: expecting a kernel ({', '.join(KERNELS)}) with it, got {name}")
        return options, _tuned(OPERATIONS[name], options)
    for option, value in (("-W", options.window), ("-t", options.tests)):
        if value is not None:
            raise BenchmarkError(f"{option}: expecting a benchmark of OSU's with it, got {name}")
    hosts = on_root(world, lambda: rank_hosts(options, world.size)) or world.allgather(MPI.Get_processor_name())
    kernel = make_kernel(name, hosts, options.grid, options.periodic, options.faces)
    reorder = kernel.stencil if options.reorder is None else options.reorder == "topompi"
    benchmark = KernelBenchmark(kernel, reorder, len(options.sides))
    return replace(options, grid=kernel.shape, reorder=REORDERS[not reorder]), benchmark


def _tuned(kind: type[Operation], options: Options) -> type[Operation]:
    """Return the operation with the window and the number of ``Test`` calls from the options."""
    if options.window is not None and kind.window is None:
        raise BenchmarkError(f"-W: expecting a benchmark of bandwidth with it, got {options.benchmark}")
    if options.tests is not None and not issubclass(kind, Overlapped):
        raise BenchmarkError(f"-t: expecting a non-blocking collective with it, got {options.benchmark}")
    if options.sizes is not None and kind.atomic:
        raise BenchmarkError(f"-m: expecting no size, for {options.benchmark} is of {kind.item()} bytes")
    return kind.tuned(window=options.window, tests=options.tests)
