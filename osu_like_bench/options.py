"""The options of a run, and parsers of their texts on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from topompi.cli import sizes
from topompi.errors import BenchmarkError

__all__ = ["LARGE", "SIDES", "TAIL", "Options", "message_sizes", "parse_bytes", "parse_tail"]

SIDES = ("topompi", "native")
LARGE = 8192  # bytes; above this size, OSU measures a tenth of the iterations
SMALL_RUN, LARGE_RUN = (1000, 100), (100, 10)  # iterations, warm-ups
DEFAULT_SIZES = "1:1M"
TAIL = "P50,P90,P99"


@dataclass(frozen=True)
class Options:
    """The options of one run.

    :param benchmark: name of the benchmark.
    :param sizes: ``MAX`` or ``MIN:MAX`` in bytes, with suffixes K, M, G; None for the benchmark's own.
    :param iterations: number of timed calls per size and side; None for OSU's defaults.
    :param warmup: number of untimed calls before them; None for OSU's defaults.
    :param full: whether minimum, maximum and iterations are printed too.
    :param check: whether the data are validated after every size, on every side.
    :param root: number of the root rank, ``rotate`` for another root in each iteration, or None for rank 0.
    :param sides: names of the sides in SIDES that run, interleaved if both do.
    :param topology: topology source, or None for that of the environment or the host.
    :param lfts: forwarding tables of the source.
    :param hosts: host list, or None for the hosts the job runs on.
    :param place: placement policy for ``hosts``.
    :param json: file for the record.
    :param window: number of messages in flight, for benchmarks of bandwidth; None for OSU's 64.
    :param tests: number of calls of ``Test`` during the computation, for non-blocking collectives; None for none, as in
        OSU.
    :param tail: percentiles of the iterations' times to print, ascending.
    :param memory: most bytes that a rank may hold in buffers; larger sizes are left out.
    :param grid: extents of the process grid, ``8x8x8``; this option and the following ones are for kernels only.
    :param periodic: whether the grid wraps around.
    :param faces: relative message sizes by dimension, ``1,1,4``.
    :param reorder: ``topompi`` if topompi's side reorders the ranks, ``none`` if not; None for the kernel's default.
    """

    benchmark: str
    sizes: str | None = None
    iterations: int | None = None
    warmup: int | None = None
    full: bool = False
    check: bool = False
    root: str | None = None
    sides: tuple[str, ...] = ("topompi",)
    topology: str | None = None
    lfts: str | None = None
    hosts: str | None = None
    place: str | None = None
    json: str | None = None
    window: int | None = None
    tests: int | None = None
    tail: tuple[float, ...] = ()
    memory: int = 512 << 20
    grid: str | None = None
    periodic: bool = False
    faces: str | None = None
    reorder: str | None = None

    def repetitions(self, nbytes: int) -> tuple[int, int]:
        """Return the numbers of iterations and warm-ups for a message size in bytes."""
        iterations, warmup = SMALL_RUN if nbytes <= LARGE else LARGE_RUN
        return (
            iterations if self.iterations is None else self.iterations,
            warmup if self.warmup is None else self.warmup,
        )

    def roots(self, rooted: bool, ranks: int) -> tuple[int, ...]:
        """Return the roots that successive calls use in turn; raise BenchmarkError if the root is not a rank."""
        if self.root is not None and not rooted:
            raise BenchmarkError(f"--root: expecting a rooted benchmark, got {self.benchmark}")
        if self.root == "rotate":
            return tuple(range(ranks))
        text = self.root or "0"
        if not re.fullmatch(r"[0-9]+", text) or int(text) >= ranks:
            raise BenchmarkError(f"--root: expecting rotate or a rank in range({ranks}), got {text!r}")
        return (int(text),)


def parse_bytes(text: str, option: str) -> int:
    """Return the number of bytes that ``64``, ``8K`` or ``1M`` means; ``option`` is its name in the error."""
    return sizes.parse_bytes(text, option, BenchmarkError)


def parse_tail(text: str | None) -> tuple[float, ...]:
    """Return the percentiles that ``50,90`` or ``P50,P90`` means, ascending; empty for None."""
    words = [] if text is None else text.split(",")
    wrong = next((word for word in words if not re.fullmatch(r"[Pp]?[0-9]{1,2}(\.[0-9]+)?|[Pp]?100", word)), None)
    if wrong is not None:
        raise BenchmarkError(f"-z: expecting percentiles such as {TAIL}, got {wrong!r}")
    return tuple(sorted({float(word.lstrip("Pp")) for word in words}))


def message_sizes(text: str | None, item: int) -> tuple[int, ...]:
    """Return message sizes in bytes, each double the one before.

    :param text: ``MAX`` or ``MIN:MAX``; None for the defaults.
    :param item: bytes of one element; as in OSU, no size is below it.
    :raises BenchmarkError: if the range is malformed or empty, or its first size is not a multiple of ``item``.
    """
    low, colon, high = (DEFAULT_SIZES if text is None else text).partition(":")
    first = parse_bytes(low, "-m") if colon else 1
    last = parse_bytes(high if colon else low, "-m")
    if first > last:
        raise BenchmarkError(f"-m: expecting MIN <= MAX, got {text!r}")
    first = max(first, item)
    if first > last or first % item:
        raise BenchmarkError(f"-m: expecting sizes in whole elements of {item} bytes, got {text!r}")
    return tuple(first << power for power in range((last // first).bit_length()))
