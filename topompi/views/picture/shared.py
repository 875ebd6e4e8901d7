"""Drawing of jobs side by side on a fabric, with the links that several of them use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import cut_middle
from ...topology import Routes
from .bundles import Bundle
from .cells import FREE, JOB_COLOURS, Cell, CellPicture, MarkedLink
from .fabricscene import ROW
from .folding import SwitchBox, fold
from .legend import GREY, IDLE, SHADES, load_look
from .names import fitting
from .scene import LETTER, Box, Line, Scene, Text, letters, paragraph

__all__ = ["BusyLink", "job_colours", "shared_scene"]

Integers = NDArray[np.integer]
ONE, NONE = ("#8fa6c6", 1.2), (IDLE, 0.6)  # colour and width of a line that one job uses, and none
SIZE = 11  # pixels; height of the letters below the picture
NAMED = 6  # jobs that a tool tip names


@dataclass(frozen=True)
class BusyLink:
    """A link that several jobs use.

    :param jobs: positions of these jobs.
    :param share: share of the time in which the link is busy, while the jobs run.
    """

    jobs: tuple[int, ...]
    share: float


def job_colours(count: int) -> list[str]:
    """The colours of a number of jobs; after sixteen they begin again."""
    return [JOB_COLOURS[job % len(JOB_COLOURS)] for job in range(count)]


def shared_scene(
    routes: Routes,
    title: str,
    jobs: Mapping[str, Integers],
    used: NDArray[np.bool_],
    busy: Mapping[int, BusyLink],
    words: Sequence[str] = (),
) -> Scene:
    """Draw jobs on the hosts of a fabric, and how busy the links are that several of them use.

    Switches that no job crosses are drawn together if there are many, and their hosts are counted.

    :param routes: the routes over the whole fabric.
    :param title: title of the picture.
    :param jobs: hosts of each job by its name, numbers in the fabric.
    :param used: whether a job uses each link, shape (links,).
    :param busy: the links between switches that several jobs use, by number.
    :param words: lines of text below the picture.
    """
    return _Shared(routes, jobs, used, busy, words).scene(title)


class _Shared(CellPicture):
    def __init__(
        self,
        routes: Routes,
        jobs: Mapping[str, Integers],
        used: NDArray[np.bool_],
        busy: Mapping[int, BusyLink],
        words: Sequence[str],
    ) -> None:
        self._jobs, self._used, self._busy, self._words_below = jobs, used, busy, words
        self._colours = job_colours(len(jobs))
        names = list(jobs)
        marked = {}
        for link, one in busy.items():
            mine = [names[job] for job in one.jobs]
            listed = ", ".join(mine[:NAMED]) + (f" and {len(mine) - NAMED} more" if len(mine) > NAMED else "")
            marked[link] = MarkedLink(f"used by {listed}, busy {one.share:.0%} of the time", tuple(mine))
        super().__init__(routes, self._cells_of(routes.fabric.num_hosts), marked)
        between = np.intersect1d(np.flatnonzero(used), self.fabric.switch_links).tolist()
        ends = (self.fabric.link_source, self.fabric.link_target)
        self._used_between = {frozenset(self._node_at(end[link]) for end in ends) for link in between}

    def _cells_of(self, hosts: int) -> list[Cell]:
        """The look of each host, with the colours of its jobs."""
        on_host: dict[int, list[int]] = {}
        for job, held in enumerate(self._jobs.values()):
            for host in held.tolist():
                on_host.setdefault(host, []).append(job)
        names, cells = list(self._jobs), [Cell("free")] * hosts
        for host, here in on_host.items():
            mine = tuple(names[job] for job in here)
            cells[host] = Cell(", ".join(mine), mine, tuple(self._colours[job] for job in here))
        return cells

    def _folded(self, routes: Routes) -> list[SwitchBox]:
        fabric = routes.fabric
        crossed = np.zeros(fabric.num_adapters + fabric.num_switches, dtype=bool)
        for ends in (fabric.link_source, fabric.link_target):
            crossed[ends[self._used]] = True
        return fold(fabric, crossed[fabric.num_adapters :], apart=True)

    def _is_free(self, number: int) -> bool:
        """Whether no host of a box has a job, in a fabric whose hosts are not drawn one by one."""
        return not self.one_by_one and not any(self._cells[host].jobs for host in self.hosts[number])

    def _height(self, number: int) -> float:
        return ROW if self._is_free(number) else super()._height(number)

    def _hosts(self, number: int) -> list[Line | Box | Text]:
        if not self.hosts[number] or not self._is_free(number):
            return super()._hosts(number)
        x, y, count = self.x[number], self.bottom + 28, len(self.hosts[number])
        words = fitting(letters(self.column - 4, 10), f"{count:,} hosts, free", f"{count:,} free", f"{count:,}")
        return [Line(((x, self.bottom), (x, y)), *NONE), Text(x, y + 10, words, 10, "middle", GREY)]

    def _link(self, bundle: Bundle) -> Line:
        line = super()._link(bundle)
        shared = [self._busy[link].share for link in self._marked_between.get((bundle.low, bundle.high), ())]
        colour, width = load_look(max(shared), 1.0) if shared else ONE if self._is_used(bundle) else NONE
        return replace(line, colour=colour, width=width)

    def _is_used(self, bundle: Bundle) -> bool:
        return frozenset((bundle.low, bundle.high)) in self._used_between

    def _links(self) -> list[Line | Box | Text]:
        lines = [self._link(one) for one in self.bundles if self.one_by_one or self._is_used(one)]
        return [*sorted(lines, key=lambda line: line.width)]  # the busiest are drawn last, on top

    def _legend(self) -> list[Box | Text]:
        items: list[Box | Text] = []
        x, y = 10.0, 0.0
        for name, colour in zip(("free host", *self._jobs), (FREE, *self._colours), strict=True):
            words = cut_middle(name, 30)
            step = 36 + LETTER * SIZE * len(words)
            if x + step > self.width:
                x, y = 10.0, y + 18
            items += [Box(x, y - 10, 12, 12, colour, GREY), Text(x + 18, y, words, SIZE)]
            x += step
        y += 22
        head = paragraph(
            10, y, "links, by the share of the time in which the busiest of a line is busy:", self.width, GREY
        )
        items += head
        x = 10 + head[0].length + 10
        looks = [*((load_look(above + 0.05, 1.0), above) for above, _ in SHADES), (ONE, -1.0), (NONE, -2.0)]
        none = "no job" if self.one_by_one else "no job: not drawn"
        names = ("above 90 %", "50 to 90 %", "less", "one job alone", none)
        for ((colour, width), _), name in zip(looks, names, strict=True):
            items += [Box(x, y - 4 - width / 2, 18, max(width, 1.5), colour), Text(x + 24, y, name, SIZE)]
            x += 44 + LETTER * SIZE * len(name)
        for words in self._words_below:
            lines = paragraph(10, y + 22, words, self.width - 20, "#222222", SIZE)
            items += lines
            y = lines[-1].y - 6
        return items
