"""The transposes of a pencil FFT: alltoalls within the rows and within the columns of a process grid.

The grid has R rows and C columns; the rank in row r and column c is r * C + c. A row is C consecutive ranks, which in
the usual placement share a host if C is its number of slots; a column then has one rank on each host. (Subramoni 2013,
section 6, calls rows columns, and columns rows.)
"""

from __future__ import annotations

import numpy as np

from .kernel import Alltoalls, Kernel, Phase

__all__ = ["FFT3D", "P3DFFT", "AlltoallKernel", "Transposes"]


class AlltoallKernel(Kernel):
    """An alltoall of all ranks."""

    name, message = "alltoall", "bytes that a rank has for one other"
    dimensions, stencil, measured = (1,), False, False

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return the alltoall.

        :param nbytes: bytes that each rank sends to each other rank.
        """
        return (Alltoalls("all", np.arange(self.ranks)[None], nbytes),)


class Transposes(Kernel):
    """Alltoalls on a grid of rows and columns."""

    dimensions = (2,)
    stencil = False

    def rows(self, nbytes: int) -> Alltoalls:
        """Return an alltoall in each row; each rank sends a message to every other rank of its row."""
        return Alltoalls("rows", np.arange(self.ranks).reshape(self.grid), nbytes)

    def columns(self, nbytes: int) -> Alltoalls:
        """Return an alltoall in each column; each rank sends a message to every other rank of its column."""
        return Alltoalls("columns", np.arange(self.ranks).reshape(self.grid).T, nbytes)


class FFT3D(Transposes):
    """The micro-benchmark of Subramoni 2013: an alltoall in the rows, then one in the columns, with equal blocks."""

    name, title = "fft3d", "3D FFT Transposes Latency"
    message = "bytes that a rank has for one other"

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return two phases: the alltoalls in the rows of the process grid, then the alltoalls in its columns.

        :param nbytes: bytes that each rank sends to each other rank of its row, and of its column.
        """
        return (self.rows(nbytes), self.columns(nbytes))


class P3DFFT(Transposes):
    """A forward and a backward transform: alltoalls in rows, columns, columns, rows, each of a rank's whole pencil."""

    name, title = "p3dfft", "P3DFFT Transposes Latency"
    message = "bytes of a rank's pencil"
    sizes = "4K:4M"

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return four phases: alltoalls in rows, columns, columns and rows of the process grid.

        :param nbytes: bytes of a rank's pencil, which each alltoall exchanges.
        """
        rows, columns = self.grid
        there, across = self.rows(-(-nbytes // columns)), self.columns(-(-nbytes // rows))
        return (there, across, across, there)
