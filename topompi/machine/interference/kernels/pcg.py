"""An iteration of conjugate gradients on a stencil's matrix: one halo exchange and two sums over all ranks."""

from __future__ import annotations

from .halo import Halo
from .kernel import Phase, Sums

__all__ = ["PCG"]

DOUBLE = 8  # bytes


class PCG(Halo):
    """The communication of Hypre's PCG and of MILC's solver: the matrix's halo, and two dot products of one double."""

    name, title = "pcg", "Conjugate Gradients Iteration Latency"
    dimensions = (3, 4, 2, 1)

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return three phases: a halo exchange, then two sums of a double over all ranks."""
        dot = Sums(DOUBLE)
        return (self.halo(nbytes), dot, dot)
