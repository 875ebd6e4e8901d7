"""The algorithms that Open MPI is predicted to choose, beside those that the measured default shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topompi.mpi.prediction.libraries import CallShape
from topompi.mpi.prediction.libraries.openmpi import OpenMPI

from .algorithms import described
from .data import Cell, Row
from .score import TIE

__all__ = ["Told", "told"]

METHODS = {
    "bcast": "Bcast",
    "gather": "Gather",
    "scatter": "Scatter",
    "allgather": "Allgather",
    "alltoall": "Alltoall",
    "reduce": "Reduce",
    "allreduce": "Allreduce",
    "reduce_scatter": "Reduce_scatter",
}
# Names of schedules that are one algorithm of the library.
SAME = {"scatter_doubling": "scatter_doubling_handing"}


class Told:
    """The algorithm that a cell's times show for the library's default, and the predicted one.

    :param cell: a cell of Open MPI with its default.
    :ivar shown: the one forced algorithm whose time is the default's within 5 %; empty if there are several or none.
    :ivar predicted: name and shape of the algorithm that the model of the library predicts.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell, default = cell, cell.default
        assert default is not None  # the caller's part
        forced = [row for row in cell.rows if not row.is_default]
        near = [row for row in forced if max(row.seconds / default, default / row.seconds) <= TIE]
        self.shown = near[0] if len(near) == 1 else None
        self.predicted = _predicted(cell.first)

    @property
    def agrees(self) -> bool | None:
        """Whether the two are one algorithm; None if the cell does not tell."""
        if self.shown is None:
            return None
        found = described(self.shown)
        if found is None:
            return False
        return (SAME.get(found.algorithm, found.algorithm), dict(found.parameters).get("shape", "")) == self.predicted


def _predicted(row: Row) -> tuple[str, str]:
    decision = OpenMPI((4, 1), "4.1").decide(
        CallShape(METHODS[row.collective], _counted(row), np.arange(row.ranks), item=4)
    )
    if decision is None:
        return "", ""
    return SAME.get(decision.algorithm, decision.algorithm), str(decision.parameters.get("shape", ""))


def _counted(row: Row) -> int:
    return row.nbytes if row.collective in ("bcast", "reduce", "allreduce", "reduce_scatter") else row.block


def told(cells: Sequence[Cell]) -> list[Told]:
    """All cells of Open MPI in which the default and a forced algorithm were measured."""
    return [
        Told(cell)
        for cell in cells
        if cell.first.implementation == "ompi" and cell.default is not None and len(cell.rows) > 1
    ]
