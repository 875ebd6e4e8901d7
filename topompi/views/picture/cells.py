"""Drawing of a fabric whose hosts are cells in the colours of their jobs, with marked links between switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...topology import Routes
from .bundles import Bundle
from .fabricscene import LEAST_WIDE, ROW, SMALL, WIDEST, FabricPicture
from .folding import SwitchBox
from .legend import GREY
from .names import fitting, link_name
from .scene import LETTER, Box, Line, Scene, Text, letters

__all__ = ["FREE", "JOB_COLOURS", "MARKED", "Cell", "CellPicture", "MarkedLink", "cell_scene"]

FREE, EDGE, MARKED, DARK = "#ffffff", "#b9b9b9", "#d00000", "#333333"
# Colours of jobs; the first six are those of M. Okabe and K. Ito, which colour-blind readers tell apart.
JOB_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6a3d9a", "#b2df8a", "#8c6d31", "#fdbf6f"),
    *("#1f3b73", "#a6cee3", "#66c2a5", "#e7b6d3", "#5f6b2f", "#b39ddb"),
)
SIDES, DEEP = (14.0, 11.0, 9.0, 7.0), 260.0  # pixels; sides of a cell, and the height for which the largest is taken
MOST_STRIPES = 4  # jobs on one host whose colours are drawn
MOST_CELLS = 4_096  # hosts; in a fabric of more, hosts side by side that look alike are one bar
GAP = 4.0  # pixels between the cells of two leaf switches in one box
MOST_NAMED = 4  # marked links that a tool tip names
DIM = 140.0  # brightness, 0 to 255, of a colour below which the letters on it are white


@dataclass(frozen=True)
class Cell:
    """The look of a host.

    :param tip: tool tip without the host's name.
    :param jobs: names of the jobs on the host, none of them with blanks.
    :param colours: colour of each job, as #rrggbb.
    :param is_crossed: whether the host is crossed out, because it takes no further jobs.
    """

    tip: str = ""
    jobs: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    is_crossed: bool = False


@dataclass(frozen=True)
class MarkedLink:
    """A link between switches that is drawn in the colour of warnings.

    :param tip: reason, for the tool tip.
    :param jobs: names of the jobs that it belongs to, none of them with blanks.
    """

    tip: str
    jobs: tuple[str, ...] = ()


def cell_scene(
    routes: Routes, title: str, cells: Sequence[Cell], marked: Mapping[int, MarkedLink], least: float = LEAST_WIDE
) -> Scene:
    """Draw a fabric whose hosts are cells; the layout depends on the fabric alone.

    If the fabric is small, a cell has the host's name; else cells are small squares, a row or more per leaf switch.

    :param routes: the routes over the whole fabric.
    :param title: title of the picture.
    :param cells: look of each host of the fabric.
    :param marked: the marked links, by number.
    :param least: least width of the picture in pixels.
    """
    return CellPicture(routes, cells, marked, least).scene(title)


class CellPicture(FabricPicture):
    """A picture whose hosts are cells; the parameters are those of `cell_scene`."""

    def __init__(
        self, routes: Routes, cells: Sequence[Cell], marked: Mapping[int, MarkedLink], least: float = LEAST_WIDE
    ) -> None:
        self._cells, self._marked = cells, marked
        super().__init__(routes, None, None, None, least)
        self._marked_between: dict[tuple[int, int], list[int]] = {}
        for link in sorted(marked):
            low, high = sorted(self._node_at(ends[link]) for ends in (self.fabric.link_source, self.fabric.link_target))
            self._marked_between.setdefault((low, high), []).append(link)

    def _node_at(self, vertex: int) -> int:
        return int(self.of_switch[vertex - self.fabric.num_adapters])

    def _wanted(self) -> float:
        return WIDEST

    def _depth(self) -> float:
        deepest = 0.0
        for side in SIDES:
            self._side = side
            deepest = max((self._height(number) for number in range(len(self.nodes))), default=0.0)
            if self.one_by_one or deepest <= DEEP:
                break
        return deepest

    def _height(self, number: int) -> float:
        if self.one_by_one:
            return ROW * len(self.hosts[number])
        rows = [row for leaf in self._rows(number) for row in leaf]
        return self._side * len(rows) + GAP * max(len(self._rows(number)) - 1, 0)

    def _rows(self, number: int) -> list[list[list[int]]]:
        """Return the rows of hosts of each leaf switch of a box; the rows of a leaf switch are equally long."""
        leaves: dict[int, list[int]] = {int(switch): [] for switch in self.nodes[number].switches}
        for host in self.hosts[number]:
            leaves[int(self.fabric.adapter_leaf[self.fabric.host_adapters[host][0]])].append(host)
        most = max(1, int((self.column - 6) / self._side))
        return [_even(hosts, most) for hosts in leaves.values() if hosts]

    def _hosts(self, number: int) -> list[Line | Box | Text]:
        if not self.hosts[number]:
            return []
        x, y = self.x[number], self.bottom + 28
        items: list[Line | Box | Text] = [Line(((x, self.bottom), (x, y)), GREY, 1.5)]
        if self.one_by_one:
            width = min(self.column - 6, WIDEST)
            for at, host in enumerate(self.hosts[number]):
                items += self._named(host, Box(x - width / 2, y + ROW * at, width, ROW - 1, FREE))
            return items
        for leaf in self._rows(number):
            left = x - self._side * len(leaf[0]) / 2
            for row in leaf:
                items += self._squares(row, left, y)
                y += self._side
            y += GAP
        return items

    def _named(self, host: int, frame: Box) -> list[Line | Box | Text]:
        cell, name = self._cells[host], self.fabric.hosts[host]
        room = frame.width - (frame.height if cell.is_crossed else 0)  # the cross stands at the right
        words = fitting(letters(room, SMALL), *([f"{name}: {', '.join(cell.jobs)}"] if cell.jobs else []), name)
        dark = bool(cell.colours) and all(map(_is_dark, cell.colours))
        text = Text(frame.x + room / 2, frame.y + 10.5, words, SMALL, "middle", FREE if dark else "#222222")
        return [*self._cell([host], frame), replace(text, jobs=" ".join(cell.jobs))]

    def _squares(self, row: Sequence[int], left: float, y: float) -> list[Line | Box | Text]:
        items: list[Line | Box | Text] = []
        for run in self._runs(row):
            frame = Box(left, y, self._side * len(run) - 1, self._side - 1, FREE)
            items += self._cell(run, frame)
            left += self._side * len(run)
        return items

    def _runs(self, row: Sequence[int]) -> list[list[int]]:
        """Divide a row into the hosts that are drawn as one bar each: single hosts, unless the fabric is large."""
        runs: list[list[int]] = []
        for host in row:
            is_large = self.fabric.num_hosts > MOST_CELLS
            if is_large and runs and self._cells[runs[-1][-1]] == self._cells[host]:
                runs[-1].append(host)
            else:
                runs.append([host])
        return runs

    def _cell(self, hosts: Sequence[int], frame: Box) -> list[Line | Box | Text]:
        """Draw hosts that look alike in a frame: a stripe per job, and a cross if they take no further jobs."""
        cell, names = self._cells[hosts[0]], [self.fabric.hosts[host] for host in hosts]
        name = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        tip = f"{name}: {cell.tip}" if cell.tip else name
        colours, jobs = cell.colours[:MOST_STRIPES] or (FREE,), " ".join(cell.jobs)
        width = frame.width / len(colours)
        items: list[Line | Box | Text] = [
            replace(
                frame, x=frame.x + at * width, width=width, colour=colour, edge="" if cell.jobs else EDGE,
                tip=tip, jobs=jobs,
            )
            for at, colour in enumerate(colours)
        ]  # fmt: skip
        if cell.is_crossed:
            right, low = frame.x + frame.width, frame.y + frame.height
            side = min(frame.width, frame.height)
            left = right - side
            middle = ((left + right) / 2, (frame.y + low) / 2)
            cross = ((left, frame.y), (right, low), middle, (right, frame.y), (left, low))
            dark = bool(cell.colours) and _is_dark(cell.colours[-1])
            items.append(Line(cross, "#ffffff" if dark else DARK, 1.5, tip, jobs=jobs))
        return items

    def _switch(self, number: int, node: SwitchBox) -> list[Line | Box | Text]:
        items = super()._switch(number, node)
        within = self._marked_between.get((number, number))
        if within and isinstance(items[0], Box):
            tip, jobs = self._words(within)
            items[0] = replace(items[0], edge=MARKED, tip=f"{items[0].tip}; links within: {tip}", jobs=jobs)
        return items

    def _links(self) -> list[Line | Box | Text]:
        order = sorted(self.bundles, key=lambda one: len(self._marked_between.get((one.low, one.high), ())))
        return [self._link(one) for one in order]  # the marked ones are drawn last, on top

    def _link(self, bundle: Bundle) -> Line:
        line, marked = super()._link(bundle), self._marked_between.get((bundle.low, bundle.high))
        if not marked:
            return replace(line, colour="#c3cedd")
        tip, jobs = self._words(marked)
        width = 1.6 + 2.4 * min(1.0, len(marked) / (2 * bundle.cables or 1))
        return replace(line, colour=MARKED, width=width, tip=f"{line.tip}; {tip}", jobs=jobs)

    def _words(self, links: Sequence[int]) -> tuple[str, str]:
        """Return the tool tip of marked links, and the names of their jobs."""
        named = [f"{link_name(self.fabric, link, self.names)} {self._marked[link].tip}" for link in links[:MOST_NAMED]]
        more = [f"and {len(links) - MOST_NAMED:,} more links"] if len(links) > MOST_NAMED else []
        jobs = dict.fromkeys(job for link in links for job in self._marked[link].jobs)
        return "; ".join([*named, *more]), " ".join(jobs)

    def _subtitle(self) -> str:
        return super()._subtitle().replace(" directed links", " directed links; a cell is a host, coloured by its job")

    def _legend(self) -> list[Box | Text]:
        items: list[Box | Text] = []
        x = 10.0
        for sign, words in (("", "free host"), ("×", "takes no jobs (drained, down, reserved)")):
            items += [Box(x, -10, 12, 12, FREE, EDGE), Text(x + 6, 0, sign, 13, "middle", DARK, bold=True)]
            items.append(Text(x + 18, 0, words, 11, colour=GREY))
            x += 40 + LETTER * 11 * len(words)
        items += [Box(x, -6, 18, 4, MARKED), Text(x + 24, 0, "link that two jobs share", 11, colour=GREY)]
        return items


def _even(hosts: Sequence[int], most: int) -> list[list[int]]:
    """Divide hosts into as few rows of at most ``most`` as possible, all but the last equally long."""
    width = -(-len(hosts) // -(-len(hosts) // most))
    return [list(hosts[at : at + width]) for at in range(0, len(hosts), width)]


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < DIM
