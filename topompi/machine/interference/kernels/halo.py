"""Halo exchange of a stencil: every process exchanges messages with its two neighbours in every dimension at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ....mapping import CommunicationGraph
from .kernel import Burst, Kernel, Phase

__all__ = ["Halo", "Stencil", "Stencil3D", "Stencil4D"]


class Halo(Kernel):
    """The halo exchange of a grid of any dimension d.

    Each rank sends 2 d messages, fewer at the border of an open grid; a rank whose dimension has extent 1 is its own
    neighbour there.
    """

    message = "bytes of a face"

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return one exchange of halos."""
        return (self.halo(nbytes),)

    def halo(self, nbytes: int) -> Burst:
        """Return messages to all neighbours; the tag is twice the dimension, plus 1 for the neighbour above."""
        extents, unit = np.array(self.grid), np.eye(len(self.grid), dtype=np.int64)
        steps = np.stack([-unit, unit], axis=1).reshape(-1, len(extents))
        place = np.stack(np.unravel_index(np.arange(self.ranks), self.grid), axis=1)
        reached = place[:, None, :] + steps[None, :, :]
        inside = ((reached >= 0) & (reached < extents)).all(axis=2) | self.periodic
        source, tag = np.nonzero(inside)
        target = np.ravel_multi_index(tuple(reached[source, tag].T), self.grid, mode="wrap")
        faces = np.array(self.faces or (1,) * len(extents), dtype=np.int64)
        return Burst(source, target.astype(np.int64), nbytes * faces[tag // 2], tag)

    @cached_property
    def graph(self) -> CommunicationGraph:
        """The communication graph of the stencil, marked as a grid, for which mappers have special methods."""
        periods = [self.periodic] * len(self.grid)
        return CommunicationGraph.cartesian(self.grid, periods, self.faces or 1)


class Stencil(Halo):
    """The halo exchange of a grid of any number of dimensions from 1 to 6."""

    name = "stencil"
    dimensions, measured = (3, 1, 2, 4, 5, 6), False


class Stencil3D(Halo):
    """The halo exchange of a 3D grid."""

    name, title = "stencil3d", "3D Stencil Halo Exchange Latency"
    dimensions = (3,)


class Stencil4D(Halo):
    """The halo exchange of a 4D grid."""

    name, title = "stencil4d", "4D Stencil Halo Exchange Latency"
    dimensions = (4,)
