"""The interactive page of profiles: one HTML file with all of its data, which needs no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import SourceError
from ...inputs import read_text
from ...topology import TopologyInterface
from ...views.picture.writers import svg
from .analysis import GRANULARITIES, contract, edge_hops, hop_name, units_of
from .colours import DEFAULT, colours_of
from .recording import Profile, ProfileView
from .summary import summarise
from .tree import tree_of

__all__ = ["page"]

_PAGE = Path(__file__).with_name("page.html")
# Binary formats of the columns that may have large numbers, exact up to 2^53; the other columns are 32-bit integers.
WIDTHS = {"bytes": "<f8", "messages": "<f8"}


def page(
    runs: Mapping[str, tuple[Profile, TopologyInterface]],
    palette: str = DEFAULT,
    granularity: str = "",
    count: str = "",
) -> str:
    """The interactive page of one or more recorded runs, as HTML.

    :param runs: profile and placement of each run, by name.
    :param palette: name of a palette of `topompi.mpi.profile.colours`.
    :param granularity: kind of units that the page shows at first (process, host or switch); if it is "", the
        profile's own, or ``process`` if it has none.
    :param count: quantity that the page shows at first, ``bytes`` or ``messages``; if it is "", the profile's own.
    :raises ProfileError: if palette, granularity or count is another word.

    Cost: 38 bytes per pair of units that exchange messages.
    """
    found = [_run(name, *run, run[0].view_of(granularity, count)) for name, run in runs.items()]
    hops = sorted({one["hops"] for run in found for one in run["classes"]})
    data = {"runs": found, "colours": colours_of(hops, palette), "classes": {one: hop_name(one) for one in hops}}
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # so that no name can end the script
    return read_text(_PAGE, SourceError, "a page").replace("__DATA__", written)


def _run(name: str, profile: Profile, interface: TopologyInterface, view: ProfileView) -> dict[str, Any]:
    whole = summarise(profile, interface, view, hint=False)
    wanted = GRANULARITIES if profile.granularity == "process" else GRANULARITIES[1:]
    return {
        "name": name,
        "view": asdict(view),
        "facts": _facts(whole),
        "classes": whole["hops"],
        "links": whole["links"],
        "tree": _tree(profile, interface),
        "maps": {one: _map(profile, interface, one) for one in wanted},
    }


def _facts(whole: dict[str, Any]) -> list[tuple[str, str]]:
    """Pairs of a heading and its text: program, duration, job, method of recording, and totals by kind."""
    seconds = f"{whole['seconds']:.3g} s" if whole["seconds"] else ""
    facts = [
        ("program", whole["command"]),
        (whole["timed"], seconds),
        ("on", whole["job"]),
        ("recorded by", whole["method"]),
    ]
    facts += [(kind, f"{messages:,} messages, {volume:,} bytes") for kind, (messages, volume) in whole["kinds"].items()]
    return [(what, words) for what, words in (*facts, *(("note", line) for line in whole["says"])) if words]


def _tree(profile: Profile, interface: TopologyInterface) -> str:
    """The picture of the bytes on each link, on the fabric's tree, as SVG; "" if there is no fabric."""
    scene = tree_of(profile.graph(), interface, "What the links carry")
    # SVG inside HTML needs no namespace.
    return "" if scene is None else svg(scene).replace(' xmlns="http://www.w3.org/2000/svg"', "")


def _map(profile: Profile, interface: TopologyInterface, granularity: str) -> dict[str, Any]:
    """The units' names, and packed columns of their traffic; a pair of units has the hops of most of its bytes."""
    graph = profile.graph()
    names, unit = units_of(interface, granularity)
    between = contract(graph, unit, len(names))
    hops, cells = edge_hops(graph, interface), between.sources.astype(np.int64) * len(names) + between.targets
    most, mostly = np.full(len(cells), -1.0), np.zeros(len(cells), dtype=np.int64)
    place = np.searchsorted(cells, unit[graph.sources] * len(names) + unit[graph.targets])
    for one in np.unique(hops).tolist():
        volume = np.bincount(place[hops == one], graph.volume[hops == one] + 1e-9, len(cells))
        mostly[volume > most] = one
        most = np.maximum(most, volume)
    columns = {"source": between.sources, "target": between.targets, "bytes": between.volume}
    columns |= {"messages": between.messages, "hops": mostly}
    return {"names": names, **{key: _packed(column, WIDTHS.get(key, "<i4")) for key, column in columns.items()}}


def _packed(column: NDArray[np.int64], kind: str) -> str:
    """A column as base64 of its binary numbers, which a browser reads many times faster than decimal digits."""
    return b64encode(column.astype(kind).tobytes()).decode("ascii")
