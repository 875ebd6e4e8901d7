"""The difference between two fabrics: hosts, switches, cables, routes, and the paths between hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...inputs.slurm.running import RunningJob
from ...network import slices
from ..fabric import Fabric
from ..hostroutes import HostRoutes
from ..labels import end_name, switch_labels
from ..routes import Routes
from ..summary import levels_of

__all__ = ["MOST_PAIRED", "Difference", "compare"]

MOST_PAIRED = 2048  # hosts; the pairs of more hosts are not compared, because memory grows with the square
CHANGED, LOST, FOUND = "changed", "lost", "found"
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """The changes from a first fabric to a second, ready for JSON.

    :param hosts: names of hosts only in the first fabric (``gone``) and only in the second (``new``).
    :param adapters: adapters of hosts that both fabrics have: ``exchanged`` ones, another adapter at the same port of
        the same switch, as ``host: before → after``, and others only in the first fabric (``gone``) and only in the
        second (``new``), as ``host: id``.
    :param switches: labels of switches only in the first fabric (``gone``) and only in the second (``new``); two
        switches are the same if their ids are equal.
    :param altered: switches of another id (``exchanged``) or name (``renamed``), and ``slower`` and ``faster`` cables,
        in words, see `altered`; exchanged switches are neither gone nor new.
    :param cables: cables only in the first fabric (``gone``) and only in the second (``new``), as ``end:port -
        end:port``.
    :param routes: number of next-hop links (``entries``) from switches towards adapters that both fabrics have, and how
        many of them are ``changed`` (another next switch or port), ``lost`` (only in the first fabric) or ``found``
        (only in the second).
    :param pairs: number of ordered ``pairs`` of hosts that both fabrics have, and how many have another path
        (``changed``), another number of ``hops``, a route only in the first fabric (``lost``) or only in the second
        (``found``); None if they were not compared, because there are more than MOST_PAIRED hosts.
    :param examples: some changed pairs: hosts ``from`` and ``to``, and hops ``before`` and ``after``, None if there is
        no route.
    :param levels: levels of the first and of the second fabric, see ``levels_of``.
    :param jobs: one entry per job with changed pairs: its name, its number of hosts, and counts of its pairs as in
        ``pairs``.
    """

    hosts: dict[str, list[str]]
    adapters: dict[str, list[str]]
    switches: dict[str, list[str]]
    altered: dict[str, list[str]]
    cables: dict[str, list[str]]
    routes: dict[str, int]
    pairs: dict[str, int] | None
    examples: list[dict[str, object]]
    levels: list[list[dict[str, object]]]
    jobs: list[dict[str, object]]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        lists = (self.hosts, self.adapters, self.switches, self.altered, self.cables)
        sets = [names for one in lists for names in one.values()]
        counts = [self.routes[key] for key in (CHANGED, LOST, FOUND)]
        return any(sets) or any(counts) or self._pairs_differ()

    def _pairs_differ(self) -> bool:
        return self.pairs is not None and any(count for key, count in self.pairs.items() if key != "pairs")


def compare(
    before: Routes,
    after: Routes,
    hosts: Sequence[str] | None = None,
    jobs: Sequence[RunningJob] = (),
    examples: int = 10,
) -> Difference:
    """Compare two fabrics with their routes; of the alternative routes (LMC) only the first is compared.

    :param before: the routes over the first fabric.
    :param after: the routes over the second fabric.
    :param hosts: names of the hosts whose pairs are compared if both fabrics have them, and they are at most
        MOST_PAIRED; by default all hosts.
    :param jobs: jobs to report if routes between their hosts differ.
    :param examples: maximum number of changed pairs to list.
    Cost: one pass over a table of next-hop links; memory for n * n * (longest route) numbers, with n compared hosts.
    """
    from .altered import altered, exchanged_switches  # imported here, because only this function needs it

    one, other = before.fabric, after.fabric
    switches = exchanged_switches(one, other)
    exchanged = _exchanged_adapters(one, other) | switches
    same = _Numbers(one, other, exchanged)
    common = [host for host in (one.hosts if hosts is None else dict.fromkeys(hosts)) if same.has_host(host)]
    pairs, found = (None, []) if len(common) > MOST_PAIRED else _pairs(before, after, common, same, examples)
    affected = []
    for job in jobs:
        theirs = [host for host in dict.fromkeys(job.hosts) if same.has_host(host)]
        counts = _pairs(before, after, theirs, same, 0)[0]
        if any(count for key, count in counts.items() if key != "pairs"):
            affected.append({"job": job.name, "hosts": len(theirs), **counts})
    return Difference(
        hosts=_sides(one.hosts, other.hosts),
        adapters=_adapters(one, other),
        switches=_switches(one, other, switches),
        altered=altered(one, other, exchanged),
        cables=_sides(list(_cables(one)), list(_cables(other, one))),
        routes=_entries(before, after, same),
        pairs=pairs,
        examples=found,
        levels=[levels_of(before), levels_of(after)],
        jobs=affected,
    )


class _Numbers:
    """Common numbers for the vertices and links of two fabrics: parts that are the same in both have one number.

    Two vertices are the same if their ids are equal or one replaced the other, two links if their ends and their source
    ports are equal.

    :param one: the first fabric.
    :param other: the second fabric.
    :param exchanged: id in the second fabric -> id in the first, for parts that were exchanged.
    """

    def __init__(self, one: Fabric, other: Fabric, exchanged: dict[str, str]) -> None:
        self.one, self.other = one, other
        number: dict[str, int] = {}
        self.vertex = [
            np.array(
                [number.setdefault(ids.get(name, name), len(number)) for name in (*of.adapter_ids, *of.switch_ids)],
                dtype=np.int64,
            )
            for of, ids in ((one, dict[str, str]()), (other, exchanged))
        ]

    def has_host(self, host: str) -> bool:
        return host in self.one.host_index and host in self.other.host_index

    def of_links(self, side: int) -> Ids:
        """The number that each link of one fabric has in common with the same link of the other fabric.

        It is computed from the link's source, source port and target. The extra last element is -1, so that looking up
        link number -1 ("no link") gives -1.

        :param side: 0 for the first fabric, 1 for the second.
        """
        fabric = (self.one, self.other)[side]
        count = sum(map(len, self.vertex))
        source, target = self.vertex[side][fabric.link_source], self.vertex[side][fabric.link_target]
        keys = (source * (1 << 17) + fabric.link_source_port) * count + target
        return np.append(keys, -1)


def _sides(before: Sequence[str], after: Sequence[str]) -> dict[str, list[str]]:
    """Find entries that occur more often in the first list (``gone``) or in the second (``new``), in the lists' order.

    An entry is repeated as many times as the counts differ.
    """
    first, second = Counter(before), Counter(after)
    return {"gone": list((first - second).elements()), "new": list((second - first).elements())}


def _adapters(one: Fabric, other: Fabric) -> dict[str, list[str]]:
    before, after = (_adapter_places(of) for of in (one, other))
    gone = {place: name for name, place in before.items() if name not in after and place[0] in other.host_index}
    new = {place: name for name, place in after.items() if name not in before and place[0] in one.host_index}
    return {
        "exchanged": [f"{place[0]}: {gone[place]} → {new[place]}" for place in gone if place in new],
        "gone": [f"{place[0]}: {name}" for place, name in gone.items() if place not in new],
        "new": [f"{place[0]}: {name}" for place, name in new.items() if place not in gone],
    }


def _exchanged_adapters(one: Fabric, other: Fabric) -> dict[str, str]:
    """Return id in the second fabric -> id in the first of adapters at the same port of the same switch."""
    before, after = (_adapter_places(of) for of in (one, other))
    gone = {place: name for name, place in before.items() if name not in after}
    return {name: gone[place] for name, place in after.items() if name not in before and place in gone}


def _adapter_places(fabric: Fabric) -> dict[str, tuple[str, str, int]]:
    """Return the host name, the leaf switch's id and the port there of each adapter, by the adapter's id.

    An adapter without a cable has its own id in place of the leaf switch's.
    """
    places = {}
    for adapter, name in enumerate(fabric.adapter_ids):
        link = int(fabric.adapter_uplink[adapter])
        leaf = fabric.vertex_id(int(fabric.link_target[link])) if link >= 0 else name
        port = int(fabric.link_target_port[link]) if link >= 0 else 0
        places[name] = fabric.hosts[int(fabric.adapter_host[adapter])], leaf, port
    return places


def _switches(one: Fabric, other: Fabric, exchanged: dict[str, str]) -> dict[str, list[str]]:
    sides = _sides(one.switch_ids, [exchanged.get(identity, identity) for identity in other.switch_ids])
    labels = {
        key: dict(zip(of.switch_ids, switch_labels(of), strict=True)) for key, of in (("gone", one), ("new", other))
    }
    return {key: [labels[key][identity] for identity in ids] for key, ids in sides.items()}


def _cables(fabric: Fabric, named_by: Fabric | None = None) -> Iterator[str]:
    """Yield each cable once, as ``end:port - end:port``.

    :param fabric: the fabric.
    :param named_by: fabric whose labels of switches are used where it has them; None if there is none.
    """
    labels = switch_labels(fabric)
    if named_by is not None:
        known = dict(zip(named_by.switch_ids, switch_labels(named_by), strict=True))
        labels = [known.get(identity, label) for identity, label in zip(fabric.switch_ids, labels, strict=True)]
    columns = (fabric.link_source, fabric.link_source_port, fabric.link_target, fabric.link_target_port)
    for source, port, target, target_port in zip(*(column.tolist() for column in columns), strict=True):
        ends = sorted(
            f"{end_name(fabric, labels, vertex)}:{number}" if number else end_name(fabric, labels, vertex)
            for vertex, number in ((source, port), (target, target_port))
        )
        if fabric.vertex_id(source) <= fabric.vertex_id(target):
            yield " - ".join(ends)


def _entries(before: Routes, after: Routes, same: _Numbers) -> dict[str, int]:
    one, other = before.fabric, after.fabric
    switches = [
        (one.switch_index[name], other.switch_index[name]) for name in one.switch_ids if name in other.switch_index
    ]
    adapters = [
        (one.adapter_index[name], other.adapter_index[name]) for name in one.adapter_ids if name in other.adapter_index
    ]
    here = np.array(adapters, dtype=np.int32).reshape(-1, 2)
    keys = same.of_links(0), same.of_links(1)
    count: Counter[str] = Counter()
    for some in slices(len(switches), len(adapters)):
        rows = np.array(switches[some], dtype=np.int32)
        was, now = (
            keys[side][routes.tables.links_at(np.repeat(rows[:, side], len(here)), np.tile(here[:, side], len(rows)))]
            for side, routes in enumerate((before, after))
        )
        count.update(_kinds(was, now))
    return {"entries": count["entries"], **{key: count[key] for key in (CHANGED, LOST, FOUND)}}


def _kinds(was: Ids, now: Ids) -> dict[str, int]:
    return {
        "entries": int(((was >= 0) | (now >= 0)).sum()),
        CHANGED: int(((was != now) & (was >= 0) & (now >= 0)).sum()),
        LOST: int(((was >= 0) & (now < 0)).sum()),
        FOUND: int(((was < 0) & (now >= 0)).sum()),
    }


def _pairs(
    before: Routes, after: Routes, hosts: Sequence[str], same: _Numbers, examples: int
) -> tuple[dict[str, int], list[dict[str, object]]]:
    """Count pairs of hosts by kind of change, and list up to ``examples`` changed pairs, those with lost routes first.

    :param before: the routes over the first fabric.
    :param after: the routes over the second fabric.
    :param hosts: names of hosts that both fabrics have.
    :param same: common numbers of the two fabrics.
    :param examples: maximum number of changed pairs to list.
    """
    if not hosts:
        return {"pairs": 0, CHANGED: 0, "hops": 0, LOST: 0, FOUND: 0}, []
    sides = [
        HostRoutes(routes, np.array([routes.fabric.host_index[host] for host in hosts], dtype=np.int32))
        for routes in (before, after)
    ]
    hops = [side.hops for side in sides]
    paths = [same.of_links(number)[side.paths()] for number, side in enumerate(sides)]
    most = max(path.shape[2] for path in paths)
    padded = [np.pad(path, ((0, 0), (0, 0), (0, most - path.shape[2])), constant_values=-1) for path in paths]
    lost, found = (hops[0] >= 0) & (hops[1] < 0), (hops[0] < 0) & (hops[1] >= 0)
    changed = (padded[0] != padded[1]).any(axis=2) & (hops[0] >= 0) & (hops[1] >= 0)
    longer = (hops[0] != hops[1]) & changed
    order = np.argsort(-(4 * lost + 3 * found + 2 * longer + changed).ravel(), kind="stable")[:examples]
    rows = []
    for at in order.tolist():
        i, j = divmod(at, len(hosts))
        if changed[i, j] or lost[i, j] or found[i, j]:
            ends = [None if side[i, j] < 0 else int(side[i, j]) for side in hops]
            rows.append({"from": hosts[i], "to": hosts[j], "before": ends[0], "after": ends[1]})
    counts = {CHANGED: changed, "hops": longer, LOST: lost, FOUND: found}
    return {"pairs": len(hosts) * (len(hosts) - 1), **{key: int(value.sum()) for key, value in counts.items()}}, rows
