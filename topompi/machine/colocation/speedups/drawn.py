"""Drawn speed-ups, for studies without measurements: each program has a sensitivity and an aggressiveness."""

from __future__ import annotations

import numpy as np

from ..errors import ColocationError
from .matrix import Speedups

__all__ = ["draw_speedups"]


def draw_speedups(programs: int, seed: int) -> Speedups:
    """Draw speed-ups of programs ``p0``, ``p1`` and so on, by a matrix of rank one.

    Beside empty halves a program is 1 to 1.3 times as fast as on nodes of its own; a partner takes the share
    sensitivity x aggressiveness of this, with both uniform, up to 0.8 and 0.6.

    :param programs: number of programs, 1 or more.
    :param seed: seed of the draw.
    :raises ColocationError: if there is no program.
    """
    if programs < 1:
        raise ColocationError(f"programs: expecting 1 or more, got {programs}")
    rng = np.random.default_rng(seed)
    alone, sensitivity, aggressiveness = rng.uniform((1, 0, 0), (1.3, 0.8, 0.6), (programs, 3)).T
    ratio = alone[:, None] * (1 - np.outer(sensitivity, aggressiveness))
    return Speedups.of([f"p{number}" for number in range(programs)], ratio, alone=alone)
