"""A table of the kernels by name, and a function that makes a kernel from command-line options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

from ....errors import BenchmarkError
from .halo import Stencil, Stencil3D, Stencil4D
from .kernel import Kernel
from .nas import BT, CG, FT, MG
from .pcg import PCG
from .transposes import FFT3D, P3DFFT, AlltoallKernel, Transposes

__all__ = ["KERNELS", "balanced", "make_kernel"]

KERNELS: dict[str, type[Kernel]] = {
    kind.name: kind for kind in (Stencil3D, Stencil4D, FFT3D, P3DFFT, PCG, FT, CG, BT, MG, AlltoallKernel, Stencil)
}


def make_kernel(
    name: str,
    hosts: Sequence[object],
    grid: str | None = None,
    periodic: bool = False,
    faces: str | None = None,
) -> Kernel:
    """Make a communication kernel from its name and the texts of its options.

    :param name: a key of ``KERNELS``.
    :param hosts: host of each rank.
    :param grid: extents as ``8x8x8``; if it is None, as even as possible. If the kernel is a transform, and several
        hosts have the same number of ranks, above 1, a row of the default grid has as many ranks as a host.
    :param periodic: True if the grid wraps around.
    :param faces: relative message sizes by dimension as ``1,1,4``.
    :raises BenchmarkError: if a text is malformed, or the grid has another number of ranks.
    """
    kind, ranks = KERNELS[name], len(hosts)
    extents = _numbers(grid, "x", "--grid") if grid else _usual(kind, hosts)
    if prod(extents) != ranks:
        raise BenchmarkError(f"--grid: expecting a grid of {ranks} ranks, got {grid}, which has {prod(extents)}")
    return kind(extents, periodic, _numbers(faces, ",", "--faces") if faces else ())


def balanced(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return extents of a grid, as even as the divisors allow, the largest first, as ``MPI_Dims_create`` does."""
    return min(_factors(ranks, dimensions, ranks), key=lambda extents: (sum(extents), extents))


def _usual(kind: type[Kernel], hosts: Sequence[object]) -> tuple[int, ...]:
    each = set(Counter(hosts).values())
    if issubclass(kind, Transposes) and len(each) == 1 and 1 < min(each) < len(hosts):
        return len(hosts) // min(each), min(each)
    return kind.usual_grid(len(hosts)) or balanced(len(hosts), kind.dimensions[0])


def _factors(product: int, count: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of descending extents with this product, none above ``most``."""
    if count == 1:
        if product <= most:
            yield (product,)
        return
    for first in range(1, min(product, most) + 1):
        if product % first == 0 and first**count >= product:
            for rest in _factors(product // first, count - 1, first):
                yield (first, *rest)


def _numbers(text: str, between: str, option: str) -> tuple[int, ...]:
    parts = text.lower().split(between)
    if not all(re.fullmatch("[0-9]+", part) for part in parts):
        raise BenchmarkError(f"{option}: expecting whole numbers like {between.join('842')}, got {text!r}")
    return tuple(map(int, parts))
