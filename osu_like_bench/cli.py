"""The command line of benchmarks: all ranks parse it, and only rank 0 prints."""

from __future__ import annotations

import io
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from difflib import get_close_matches
from enum import StrEnum
from itertools import pairwise
from typing import Annotated

import typer
from mpi4py import MPI

from topompi.cli.quantities import COUNT
from topompi.cli.terminal import HELP, Limit
from topompi.errors import BenchmarkError, TopompiError
from topompi.inputs import in_words

from .benchmarks import BENCHMARKS, REORDERS
from .command import UsageError
from .communicators import leave_together
from .kernels import FORMER, KERNELS
from .options import SIDES, TAIL, Options, parse_bytes, parse_tail
from .runner import run
from .table import ABSENT, GROUPS

__all__ = ["main"]

# Typer takes choices only as enumerations, and mypy follows only enumerations with written-out members: hence the
# `ignore` below.
Reorder = StrEnum("Reorder", [(name, name) for name in REORDERS])  # type: ignore[misc]  # computed members
Side = StrEnum("Side", [(name, name) for name in SIDES])  # type: ignore[misc]  # computed members
Native = StrEnum("Native", [("native", "native")])

NAMES = "; ".join([*(f"{group.title}: {' '.join(group.kinds)}" for group in GROUPS), f"kernels: {' '.join(KERNELS)}"])
LAST_WORDS = 0.3  # seconds that a failed rank waits before it aborts all, so that its output is forwarded before


def _named(word: str) -> str:
    """Return the benchmark's name without OSU's prefix ``osu_``; refuse an unknown name."""
    name = word.removeprefix("osu_")
    name = FORMER.get(name, name)
    if name in ABSENT:
        raise typer.BadParameter(f"{word} is not here: {ABSENT[name]}")
    if name not in BENCHMARKS:
        near = ", ".join(get_close_matches(name, BENCHMARKS) or BENCHMARKS[:3])
        raise typer.BadParameter(f"expecting a benchmark such as {near} (--help lists all), got {word!r}")
    return name


app = typer.Typer(add_completion=False, context_settings=HELP)


@app.command()
def bench(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", callback=_named, help=f"What to measure: {NAMES}.")],
    sizes: Annotated[str | None, typer.Option("-m", "--message-size", metavar="MIN:MAX", help="Bytes.")] = None,
    iterations: Annotated[int | None, COUNT("-i", "--iterations", help="Timed calls.")] = None,
    warmup: Annotated[int | None, COUNT("-x", "--warmup", help="Untimed calls before.", min=0)] = None,
    full: Annotated[bool, typer.Option("-f", "--full", help="Print minimum, maximum, iterations.")] = False,
    check: Annotated[bool, typer.Option("-c", "--validation", help="Validate the data.")] = False,
    window: Annotated[int | None, COUNT("-W", "--window-size", help="Messages in flight.")] = None,
    tests: Annotated[int | None, COUNT("-t", "--num-test-calls", help="Tests while computing.", min=0)] = None,
    tail: Annotated[str | None, typer.Option("-z", "--tail-lat", metavar="P1,P2", help=f"Percentiles; {TAIL}.")] = None,
    device: Annotated[str | None, typer.Option("-d", "--accelerator", help="Refused.", hidden=True)] = None,
    memory: Annotated[str, typer.Option("-M", "--mem-limit", help="Bytes of buffers a rank.")] = "512M",
    root: Annotated[str | None, typer.Option(help="Root rank, or rotate.", metavar="RANK")] = None,
    topology: Annotated[str | None, typer.Option(help="Topology source.", metavar="SOURCE")] = None,
    lfts: Annotated[str | None, typer.Option(help="Forwarding tables of the source.", metavar="FILE")] = None,
    hosts: Annotated[str | None, typer.Option(help="Pretend to run on these hosts.", metavar="LIST")] = None,
    place: Annotated[str | None, typer.Option(help="block, cyclic or random:SEED.", metavar="POLICY")] = None,
    versus: Annotated[Native | None, typer.Option("--vs", help="Compare, interleaved.")] = None,
    only: Annotated[Side | None, typer.Option(help="The side to run.")] = None,
    grid: Annotated[str | None, typer.Option(help="Grid of processes of a kernel.", metavar="8x8x8")] = None,
    periodic: Annotated[bool, typer.Option("--periodic", help="The grid wraps around.")] = False,
    faces: Annotated[str | None, typer.Option(help="Relative sizes of messages by dimension.", metavar="A,B,C")] = None,
    reorder: Annotated[Reorder | None, typer.Option(help="Who orders the ranks of topompi's side.")] = None,
    json: Annotated[str | None, typer.Option(help="Write the record here.", metavar="FILE")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    limit: Limit = None,
) -> Options:
    """Measure collectives or kernels through topompi, through the native MPI, or one against the other.

    Start with mpirun: mpirun -n 8 python -m osu_like_bench gather --vs native

    Kernels (stencil3d, stencil4d, fft3d, p3dfft, pcg) send what applications send. --grid is the number of processes in
    each dimension of a kernel, --faces the size of the stencil's messages in each dimension, as a multiple of the
    message size. In the stencils, topompi's side reorders the ranks, and the native side leaves them in the given
    order.

    Compare the records of two runs: python -m osu_like_bench compare A.json B.json
    """
    if device is not None:
        raise BenchmarkError(f"-d: expecting buffers in host memory, the only ones measured here, got {device!r}")
    if versus is not None and only is not None:
        raise BenchmarkError("--only: expecting no --vs, which runs both sides, got both options")
    return Options(
        benchmark=benchmark,
        sizes=sizes,
        iterations=iterations,
        warmup=warmup,
        full=full,
        check=check,
        root=root,
        sides=SIDES if versus is not None else (str(only or SIDES[0]),),
        topology=topology,
        lfts=lfts,
        hosts=hosts,
        place=place,
        json=json,
        window=window,
        tests=tests,
        tail=parse_tail(tail),
        memory=parse_bytes(memory, "--mem-limit"),
        grid=grid,
        periodic=periodic,
        faces=faces,
        reorder=None if reorder is None else reorder.value,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on all ranks; collective over COMM_WORLD.

    :param arguments: arguments of the command line; by default those of ``sys.argv``.
    :returns: exit code: 0; 1 if validation or the run failed; 2 for wrong usage.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    arguments = _with_percentiles(arguments)
    debug, world = "--debug" in arguments, MPI.COMM_WORLD
    try:
        options = _parse(arguments, silent=world.rank > 0)
        return run(options) if isinstance(options, Options) else 0
    except UsageError as error:
        message, code = error.format_message(), 2
    except (TopompiError, OSError) as error:
        message, code = in_words(error), 1
        if debug and world.rank == 0:
            traceback.print_exc()
    except Exception as error:
        _abort(f"{type(error).__name__}: {error}", debug)
    if world.rank == 0:
        _complain(message)
    if not leave_together(world):
        _abort(message, debug)
    return code


def _with_percentiles(arguments: list[str]) -> list[str]:
    """Return the arguments, with OSU's default percentiles added after each ``-z`` without percentiles."""
    given = []
    for word, after in pairwise([*arguments, ""]):
        given.append(word)
        if word in ("-z", "--tail-lat") and (not after or after[0] == "-"):
            given.append(TAIL)
    return given


def _parse(arguments: Sequence[str], silent: bool) -> object:
    """Parse the command line, and return its options; after ``--help``, a value of typer that is no `Options`.

    :param arguments: arguments of the command line.
    :param silent: whether help texts are not printed, as on all ranks but rank 0.
    """
    if not silent:
        return app(arguments, prog_name="osu_like_bench", standalone_mode=False)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return app(arguments, prog_name="osu_like_bench", standalone_mode=False)


def _complain(message: str) -> None:
    sys.stderr.write(f"osu_like_bench: {' '.join(message.split())}\n")  # in one piece, because other ranks write too
    sys.stderr.flush()


def _abort(message: str, debug: bool) -> None:
    """End all ranks after an error that may have occurred on this rank only."""
    if debug:
        traceback.print_exc()
    _complain(f"rank {MPI.COMM_WORLD.rank}: {message}" + ("" if debug else " (--debug shows where)"))
    time.sleep(LAST_WORDS)
    MPI.COMM_WORLD.Abort(1)
