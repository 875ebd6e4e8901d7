"""The options of a run, and parsers of their texts on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from topompi.cli import quantities
from topompi.errors import BenchmarkError

__all__ = ["LARGE", "SIDES", "TAIL", "Options", "message_sizes", "parse_bytes", "parse_tail"]

SIDES = ("topompi", "native")
LARGE = 8192  # bytes; above this size, OSU makes a tenth of the calls
SMALL_RUN, LARGE_RUN = (1000, 100), (100, 10)  # numbers of timed calls and of untimed calls before them, as in OSU
DEFAULT_SIZES = "1:1M"
TAIL = "P50,P90,P99"


@dataclass(frozen=True)
class Options:
    """The options of one run of a benchmark.

    :param benchmark: name of the benchmark.
    :param sizes: smallest and largest message size in bytes, ``MAX`` or ``MIN:MAX``, with suffixes K, M, G; if it is
        None, the benchmark's own sizes.
    :param iterations: number of timed calls per size and side; if it is None, OSU's default.
    :param warmup: number of untimed calls before them; if it is None, OSU's default.
    :param full: True to print also minimum, maximum and number of iterations.
    :param check: True to validate the data after every size, on every side.
    :param root: number of the root rank, or ``rotate`` if each iteration has another root; if it is None, 0.
    :param sides: names of the compared sides (topompi, native) to run; if there are two, their calls take turns.
    :param topology: topology source; if it is None, that of the environment, else the levels inside the hosts.
    :param lfts: path of the source's forwarding tables; None if they are in the source.
    :param hosts: list of virtual hosts; if it is None, the hosts on which the job runs.
    :param place: placement policy for ``hosts``.
    :param json: path of the record to write; None if none is written.
    :param window: number of messages in flight, for benchmarks of bandwidth; if it is None, OSU's 64.
    :param tests: number of calls of ``Test`` during the computation, for non-blocking collectives; if it is None, 0, as
        in OSU.
    :param tail: percentiles of the iterations' times to print, ascending.
    :param memory: maximum bytes of a rank's buffers; sizes that need more are left out.
    :param grid: number of processes in each dimension of a kernel's grid, ``8x8x8``; this option and the following ones
        are for kernels only.
    :param periodic: True if the grid wraps around.
    :param faces: size of the messages in each dimension of the grid, as a multiple of the message size, ``1,1,4``.
    :param reorder: ``topompi`` if topompi's side reorders the ranks, ``none`` if not; if it is None, the kernel's
        default.
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
        """Return the number of timed calls, and of untimed calls before them, for a message size in bytes."""
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
    """Convert a size such as ``64``, ``8K`` or ``1M`` to bytes.

    :param text: the size.
    :param option: name of the option, for the error message.
    """
    return quantities.parse_bytes(text, option, BenchmarkError)


def parse_tail(text: str | None) -> tuple[float, ...]:
    """Parse percentiles such as ``50,90`` or ``P50,P90``; return them ascending, or empty if the text is None."""
    words = [] if text is None else text.split(",")
    wrong = next((word for word in words if not re.fullmatch(r"[Pp]?[0-9]{1,2}(\.[0-9]+)?|[Pp]?100", word)), None)
    if wrong is not None:
        raise BenchmarkError(f"-z: expecting percentiles such as {TAIL}, got {wrong!r}")
    return tuple(sorted({float(word.lstrip("Pp")) for word in words}))


def message_sizes(text: str | None, item: int) -> tuple[int, ...]:
    """Return message sizes in bytes, each double the one before.

    :param text: ``MAX`` or ``MIN:MAX``; if it is None, OSU's default range.
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
