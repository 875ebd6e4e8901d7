"""Drawing of a fabric as a scene: switches by level, the hosts below them, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import cut_middle, short_names, without_common_end
from ...topology import Routes
from ...topology.labels import switch_labels
from ...topology.summary import levels_of
from .bundles import Bundle, bundles_of
from .folding import SwitchBox, fold
from .hostlines import host_lines
from .legend import GREY, IDLE, cable_legend, load_legend, load_look
from .loads import Loads, crossed_switches
from .names import further, level_words, listed
from .scene import LETTER, Box, Line, Scene, Text, letters, paragraph

__all__ = ["DrawnJob", "FabricPicture", "fabric_scene"]

BOW = 70.0  # pixels; largest height of the curve between two switches of one level
LEFT, TOP, SIDE = 166.0, 64.0, 16.0  # pixels; margins, the left one with the descriptions of levels
LEVEL, BOX, ROW = 136.0, 44.0, 15.0  # pixels; distance of levels, height of a switch, height of a host's line
NARROWEST, WIDEST = 60.0, 128.0  # pixels; limits of a column's width, if the picture has room for it
LEAST_WIDE, MOST_WIDE = 860.0, 1200.0  # pixels; least width of a picture by default, and width of a usual screen
BOLD, PLAIN, SMALL = 10.5, 10.0, 9.5  # pixels; letters of a switch's name, of hosts, and of further lines
WIDER = 1.28  # width of a bold letter divided by that of a plain letter of the same size
MOST_LISTED = 96  # hosts; if a picture would list more, each leaf switch shows only their number
MOST_ROWS = 24  # hosts; if a leaf switch would list more, each leaf switch shows only their number
OVER = 1.01  # over-subscription above which a level is marked; above 1 because of rounding
BLUE, PALE, BAND, INK = "#0072b2", "#dcebf7", "#f2f2f2", "#222222"

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DrawnJob:
    """A job to be shown in the picture of a fabric.

    :param hosts: host numbers in the fabric, each once.
    :param ranks: ranks on each host, ascending, by host number; empty if only hosts are known.
    """

    hosts: Integers
    ranks: Mapping[int, Sequence[int]]

    @classmethod
    def of_ranks(cls, rank_host: Integers) -> DrawnJob:
        """Make the job whose rank i is on host number ``rank_host[i]`` of the fabric."""
        ranks: dict[int, list[int]] = {}
        for rank, host in enumerate(rank_host.tolist()):
            ranks.setdefault(host, []).append(rank)
        return cls(np.unique(rank_host), ranks)


def fabric_scene(
    routes: Routes,
    title: str,
    job: DrawnJob | None = None,
    loads: Loads | None = None,
    full: float | None = None,
    least: float = LEAST_WIDE,
) -> Scene:
    """Draw a fabric, with a job and the loads of links if they are given.

    If a level has many switches, or there are more than some dozens of hosts, they are drawn in groups; switches that
    the job's routes cross are drawn one by one as long as there is room. The width of a link shows the time that it
    needs for its bytes, or, without loads, its number of cables. Over-subscribed levels are marked.

    :param routes: the routes over the whole fabric.
    :param title: title of the picture.
    :param job: the job whose hosts and ranks are shown; None if no job is shown.
    :param loads: bytes on the links; None to draw the number of cables instead.
    :param full: time of a link in seconds that is drawn at full width; by default the time of the busiest link.
    :param least: least width of the picture in pixels.
    """
    return FabricPicture(routes, job, loads, full, least).scene(title)


class FabricPicture:
    """The layout of a picture and its items; a subclass may draw the hosts, links and legend in another way.

    :param routes: the routes over the whole fabric.
    :param job: the job whose hosts and ranks are shown; None if no job is shown.
    :param loads: bytes on the links; None to draw the number of cables instead.
    :param full: time of a link in seconds that is drawn at full width; None for that of the busiest link.
    :param least: least width in pixels.
    """

    def __init__(
        self, routes: Routes, job: DrawnJob | None, loads: Loads | None, full: float | None, least: float
    ) -> None:
        self.fabric, self.job, self.loads, self.least = routes.fabric, job, loads, least
        self.full = full or (float(loads.seconds.max(initial=0.0)) if loads is not None else 0.0)
        self.names = switch_labels(self.fabric)
        self.plain = without_common_end(self.names)
        self.short: dict[tuple[int, int], dict[int, str]] = {}  # (level, number of letters) -> switch -> short name
        self.nodes = self._folded(routes)
        self.levels = levels_of(routes)
        self.of_switch = np.full(self.fabric.num_switches, -1, dtype=np.int64)
        for number, node in enumerate(self.nodes):
            self.of_switch[node.switches] = number
        self.bundles = bundles_of(self.fabric, self.of_switch, loads)
        self.hosts = self._hosts_of_nodes()
        mine = None if job is None else set(job.hosts.tolist())
        shown = [[one for one in row if mine is None or one in mine] for row in self.hosts]
        self.one_by_one = sum(map(len, shown)) <= MOST_LISTED and max(map(len, shown), default=0) <= MOST_ROWS
        self.shown = shown
        self.column = WIDEST  # until the longest texts are known
        self._place()

    def _folded(self, routes: Routes) -> list[SwitchBox]:
        return fold(self.fabric, None if self.job is None else crossed_switches(routes, self.job.hosts))

    def _hosts_of_nodes(self) -> list[list[int]]:
        """Hosts drawn below each node (box), in the fabric's order: a node with a host's leaf switch has the host."""
        hosts: list[list[int]] = [[] for _ in self.nodes]
        for host, adapters in enumerate(self.fabric.host_adapters):
            leaf = self.fabric.adapter_leaf[adapters]
            if len(leaf) and leaf[0] >= 0:
                hosts[self.of_switch[leaf[0]]].append(host)
        return hosts

    def _place(self) -> None:
        """Compute the positions of all nodes (boxes): a column per node, each level spread over the whole width."""
        rows = sorted({node.level for node in self.nodes}, key=lambda level: (level < 0, level))
        most = max((sum(node.level == level for node in self.nodes) for level in rows), default=1)
        wanted = self._wanted()
        self.width = min(max(LEFT + most * wanted + SIDE, self.least), max(MOST_WIDE, LEFT + most * 42 + SIDE))
        self.column = min(wanted, (self.width - LEFT - SIDE) / most)
        bowed = any(self.nodes[one.low].level == self.nodes[one.high].level == rows[-1] for one in self.bundles)
        bows = BOW if bowed else 0
        self.head = paragraph(10, 44, self._subtitle(), self.width - 20, GREY)
        self.foot = self._legend()
        lowest = max((one.y for one in self.foot), default=0.0)
        self.bottom = TOP + 30 + self.head[-1].y - 44 + bows + LEVEL * max(len(rows) - 1, 0) + BOX
        self.legend = self.bottom + 46 + self._depth() + 34  # base line of the legend's first line
        self.height = self.legend + lowest + 12
        self.y = {level: self.bottom - BOX - LEVEL * at for at, level in enumerate(rows)}
        self.x: list[float] = []
        for level in rows:
            count = sum(node.level == level for node in self.nodes)
            step = (self.width - LEFT - SIDE) / max(count, 1)
            self.x += [LEFT + step * (at + 0.5) for at in range(count)]

    def _wanted(self) -> float:
        """Return the width in pixels of a column in which the longest texts have room."""
        longest = max((len(self._label(node, WIDEST)[0]) for node in self.nodes), default=8)
        words = max((len(line) for number in range(len(self.nodes)) for line in self._host_lines(number)), default=8)
        return min(WIDEST, max(NARROWEST, WIDER * LETTER * BOLD * longest + 16, LETTER * PLAIN * words + 14))

    def _depth(self) -> float:
        """Return the height in pixels of the hosts below the leaf switch that has the most of them."""
        return ROW * max((len(self._host_lines(number)) for number in range(len(self.nodes))), default=0)

    def scene(self, title: str) -> Scene:
        """Return the picture."""
        scene = Scene(self.width, self.height, cut_middle(title, int((self.width - 20) / (WIDER * LETTER * 15))))
        scene.items += self._bands()
        scene.items += self._links()
        for number, node in enumerate(self.nodes):
            scene.items += self._switch(number, node)
            scene.items += self._hosts(number)
        scene.items += [*self.head, *(replace(one, y=one.y + self.legend) for one in self.foot)]
        return scene

    def _subtitle(self) -> str:
        fabric = self.fabric
        words = f"{fabric.num_hosts:,} hosts, {fabric.num_switches:,} switches, {fabric.num_links:,} directed links"
        if self.job is not None:
            ranks = sum(map(len, self.job.ranks.values()))
            words += f"; job: {len(self.job.hosts):,} hosts" + (
                f", {ranks:,} ranks, beside or below their hosts" if ranks else ""
            )
        folded = sum(len(node.switches) > 1 for node in self.nodes)
        return words + ("; a box with + stands for several switches" if folded else "")

    def _bands(self) -> list[Line | Box | Text]:
        """Draw a row with a description for each level; an over-subscribed level has a grey row and bold words."""
        items: list[Line | Box | Text] = []
        for level, y in self.y.items():
            facts = next((one for one in self.levels if one["level"] == level), None)
            ratio = None if facts is None else facts["oversubscription"]
            over = ratio is not None and ratio > OVER
            if over:
                items.append(Box(0, y - 10, self.width, BOX + 20, BAND))
            items.append(Text(10, y + 14, "not connected" if level < 0 else f"level {level}", 12, bold=True))
            for at, words in enumerate(level_words(facts, self._switches_at(level), ratio, over)):
                items.append(Text(10, y + 28 + 13 * at, words, 11, colour=INK if over else GREY, bold=over and at == 1))
        return items

    def _switches_at(self, level: int) -> int:
        return sum(len(node.switches) for node in self.nodes if node.level == level)

    def _room(self, level: int) -> float:
        """Return the width in pixels that a box of a level may have."""
        count = sum(node.level == level for node in self.nodes)
        return min(2 * WIDEST, (self.width - LEFT - SIDE) / max(count, 1)) - 4

    def _label(self, node: SwitchBox, room: float) -> list[str]:
        """Return the lines of a switch's box, cut to a width in pixels; a group is named after its first switch."""
        most, more = letters(room, BOLD * WIDER), len(node.switches) - 1
        if (node.level, most) not in self.short:
            members = np.flatnonzero(self.fabric.switch_level == node.level).tolist()
            names = short_names([self.plain[one] for one in members], most)
            self.short[node.level, most] = dict(zip(members, names, strict=True))
        name = self.short[node.level, most][int(node.switches[0])]
        return [name, further(more, letters(room, SMALL))] if more else [name]

    def _switch(self, number: int, node: SwitchBox) -> list[Line | Box | Text]:
        room = self._room(node.level)
        lines, x, y = self._label(node, room), self.x[number], self.y[node.level]
        width = min(room, max(NARROWEST - 10, WIDER * LETTER * BOLD * max(map(len, lines)) + 12))
        names = [self.names[one] for one in node.switches.tolist()]
        tip = f"{listed(names)}: level {node.level}, {len(self.hosts[number]):,} hosts below"
        colour = PALE if node.crossed or self.job is None else "#f1f1f1"
        items: list[Line | Box | Text] = [
            Box(x - width / 2, y, width, BOX, colour, BLUE if node.crossed else GREY, tip, number)
        ]
        first = y + BOX / 2 + 4 - 6.5 * (len(lines) - 1)
        for at, line in enumerate(lines):
            items.append(Text(x, first + 13 * at, line, BOLD if at == 0 else SMALL, "middle", bold=at == 0))
        return items

    def _host_lines(self, number: int) -> list[str]:
        ranks = {} if self.job is None else self.job.ranks
        shown, every, most = self.shown[number], len(self.hosts[number]), letters(self.column - 6, PLAIN)
        return host_lines(self.fabric.hosts, ranks, shown, every, self.one_by_one, most)

    def _hosts(self, number: int) -> list[Line | Box | Text]:
        lines = self._host_lines(number)
        if not lines:
            return []
        x, y, width = self.x[number], self.bottom + 40, self.column - 6
        names = listed([self.fabric.hosts[host] for host in self.hosts[number]])
        mine = bool(self.shown[number]) and self.job is not None
        box = Box(
            x - width / 2,
            y - 12,
            width,
            ROW * len(lines) + 4,
            PALE if mine else "#f7f7f7",
            BLUE if mine else IDLE,
            names,
        )
        items: list[Line | Box | Text] = [Line(((x, self.bottom), (x, y - 12)), *self._host_look(number)), box]
        for at, line in enumerate(lines):
            other = line.startswith("+ ") or not self.shown[number]
            items.append(Text(x, y + ROW * at, line, PLAIN, "middle", GREY if other else INK))
        return items

    def _host_look(self, number: int) -> tuple[str, float]:
        """Colour and width of the line from the node ``number`` to its hosts, by the busiest of the hosts' links."""
        if self.loads is None:
            return GREY, 1.5
        adapters = np.concatenate([self.fabric.host_adapters[host] for host in self.hosts[number]])
        links = np.concatenate((self.fabric.adapter_uplink[adapters], self.fabric.adapter_downlink[adapters]))
        return self._look(float(self.loads.seconds[links[links >= 0]].max(initial=0.0)), 1)

    def _links(self) -> list[Line | Box | Text]:
        order = sorted(self.bundles, key=lambda one: (one.seconds, one.cables))  # the busiest are drawn last, on top
        return [self._link(one) for one in order]

    def _link(self, bundle: Bundle) -> Line:
        ends = [(self.x[end], self.y[self.nodes[end].level]) for end in (bundle.low, bundle.high)]
        (x1, y1), (x2, y2) = ends
        if y1 == y2:  # nodes of one level: a curve above the row
            reach = min(BOW, 16 + abs(x2 - x1) * 0.18)
            points = tuple((x1 + (x2 - x1) * t, y1 - 4 * reach * t * (1 - t)) for t in np.linspace(0, 1, 13).tolist())
        else:
            points = ((x1, y1), (x2, y2 + BOX)) if y1 > y2 else ((x1, y1 + BOX), (x2, y2))
        tip = bundle.tip(self._name(bundle.low), self._name(bundle.high))
        return Line(points, *self._look(bundle.seconds, bundle.cables), tip, (bundle.low, bundle.high))

    def _look(self, seconds: float, cables: int) -> tuple[str, float]:
        """Colour and width of a line, by its time if loads are known, else by its number of cables.

        :param seconds: time in seconds that the link needs for its bytes.
        :param cables: number of cables.
        """
        if self.loads is not None:
            return load_look(seconds, self.full)
        most = max(one.cables for one in self.bundles) if self.bundles else 1
        return "#9bb8dd" if self.job is None else "#c9c9c9", 0.8 + 2.2 * min(cables / most, 1)

    def _name(self, number: int) -> str:
        switches = self.nodes[number].switches
        return self.names[int(switches[0])] + (f" and {len(switches) - 1:,} more" if len(switches) > 1 else "")

    def _legend(self) -> list[Box | Text]:
        if self.loads is None:
            return cable_legend(self.width, self.bundles)
        return load_legend(self.width, self.fabric, self.loads, self.full)
