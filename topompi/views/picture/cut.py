"""Drawing of a cut: the sets of hosts whose data must cross its links, and these links, on the fabric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...schedules.analysis.optimum import Certificate
from ...topology import Routes
from .cells import EDGE, FREE, JOB_COLOURS, MARKED, Cell, CellPicture, MarkedLink
from .fabricscene import LEAST_WIDE
from .legend import GREY
from .scene import LETTER, Box, Scene, Text, paragraph

__all__ = ["cut_scene"]

Integers = NDArray[np.int64]


def cut_scene(routes: Routes, title: str, proof: Certificate, hosts: Integers, words: str) -> Scene:
    """Draw the hosts of the sets of a proof in one colour per set, and the links between the sets.

    :param routes: the routes over the whole fabric.
    :param title: title of the picture.
    :param proof: the proof.
    :param hosts: number in the fabric of each host of the job, shape (hosts,).
    :param words: text below the picture.
    """
    cells = [Cell("not in the job")] * routes.fabric.num_hosts
    many = len(proof.sets) > len(JOB_COLOURS)
    for number, inside in enumerate(proof.sets):
        colour = JOB_COLOURS[0 if many else number]
        cell = Cell(f"set {number + 1} of {len(proof.sets)}", (f"set{number + 1}",), (colour,))
        for host in hosts[inside].tolist():
            cells[host] = cell
    first = routes.fabric.num_adapters
    ends = routes.fabric.link_source[proof.links], routes.fabric.link_target[proof.links]
    between = proof.links[(ends[0] >= first) & (ends[1] >= first)]
    marked = {int(link): MarkedLink("is in the cut") for link in between.tolist()}
    return _Cut(routes, cells, marked, proof, words).scene(title)


class _Cut(CellPicture):
    def __init__(
        self, routes: Routes, cells: Sequence[Cell], marked: dict[int, MarkedLink], proof: Certificate, words: str
    ) -> None:
        self._proof, self._text = proof, words
        super().__init__(routes, cells, marked, LEAST_WIDE)

    def _subtitle(self) -> str:
        return super()._subtitle().replace("coloured by its job", "coloured by its set")

    def _legend(self) -> list[Box | Text]:
        sets = self._proof.sets
        shown = [(f"{len(one):,} hosts", JOB_COLOURS[number]) for number, one in enumerate(sets)]
        if len(sets) > len(JOB_COLOURS):
            shown = [(f"{len(sets):,} sets", JOB_COLOURS[0])]
        items: list[Box | Text] = []
        x = 10.0
        for words, colour in (*shown, ("not in the job", FREE)):
            items += [Box(x, -10, 12, 12, colour, EDGE), Text(x + 18, 0, words, 11, colour=GREY)]
            x += 40 + LETTER * 11 * len(words)
        own = len(self._proof.links) - len(self._marked)
        note = f"{len(self._marked):,} links between switches in the cut" + (f", {own:,} links of hosts" if own else "")
        items += [Box(10, 10, 18, 4, MARKED), Text(34, 16, note, 11, colour=GREY)]
        return [*items, *paragraph(10, 34, self._text, self.width - 20, GREY)]
