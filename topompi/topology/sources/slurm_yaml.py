"""Reader of Slurm's ``topology.yaml``, trees and tori."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from ...errors import FabricError
from ...inputs import InputFile
from ...inputs.slurm.switches import SwitchRow
from ...inputs.slurm.topologytorus import SlurmTorus
from ...inputs.slurm.topologyyaml import NAME, read_topology, recognise
from ..builder import FabricBuilder
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report, name: str | None = None) -> Discovery:
    """Read the fabric of a file's first topology with ``cluster_default: true``, else of its first topology.

    :param texts: the files.
    :param report: receiver of problems.
    :param name: name of the topology to read instead; None for the default one.
    :raises SourceError: if the file is invalid, the topology is flat or a ring, or there is none of that name, with
        file and line.
    :raises FabricError: if definitions of switches contradict each other, with file and line.
    """
    found = read_topology(texts, report.problem, report.note, name)
    if tori := [one for one in found if isinstance(one, SlurmTorus)]:
        return _build_tori(texts[0].name, tori, report)
    return build_tree(texts[0].name, [one for one in found if isinstance(one, SwitchRow)], report)


def _build_tori(name: str, tori: Sequence[SlurmTorus], report: Report) -> Discovery:
    """Make the fabric of some tori: a switch at each coordinate, cabled to its neighbours, with the node there, if any.

    Ports are those of `topompi.topology.synthetic.torus`. Rates are unknown (NaN).

    :param name: name of the fabric.
    :param tori: the tori, which no cable joins.
    :param report: receiver of notes about coordinates without nodes.
    :raises FabricError: (a partial report only records it) if a torus or a node appears twice.
    Cost: linear in coordinates.
    """
    builder = FabricBuilder(name)
    unique: dict[str, SlurmTorus] = {}
    for torus in tori:
        if unique.setdefault(torus.name, torus) is not torus:
            report.problem(FabricError(f"{torus.place}: torus {torus.name} appears twice"))
    for torus in unique.values():
        for cell in product(*map(range, torus.dims)):
            builder.add_switch(_switch(torus, cell), where=torus.place)
    for torus in unique.values():
        for node, cell in zip(torus.nodes, torus.cells.tolist(), strict=True):
            if builder.has(node):
                report.problem(FabricError(f"{torus.place}: node {node} appears twice"))
                continue
            builder.add_adapter(node, node, where=torus.place)
            builder.add_cable(node, _switch(torus, cell), 1, 1)
        for axis, low, high in _cables(torus.dims):
            builder.add_cable(_switch(torus, low), _switch(torus, high), 2 + 2 * axis, 3 + 2 * axis)
        if bare := prod(torus.dims) - len(torus.nodes):
            report.note(f"{torus.place}: {bare:,} coordinates of torus {torus.name} have no node")
    return Discovery(builder.build())


def _switch(torus: SlurmTorus, cell: Sequence[int]) -> str:
    return f"{torus.name}/{'.'.join(map(str, cell))}"


def _cables(dims: Sequence[int]) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield axis, lower and upper coordinates of each cable; two switches in a row have one cable, not two."""
    cells = np.stack(np.unravel_index(np.arange(prod(dims)), tuple(dims)), axis=1)
    for axis, size in enumerate(dims):
        lower = cells if size > 2 else cells[cells[:, axis] < size - 1]
        upper = lower.copy()
        upper[:, axis] = (upper[:, axis] + 1) % size
        yield from ((axis, low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True))
