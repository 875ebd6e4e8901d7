"""The summary of a profile on a network, with all its numbers, for printing and for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ...mapping.graph import CommunicationGraph
from ...topology import TopologyInterface
from ...views.reordering import FIGURES, Aim, search
from .analysis import PairTraffic, by_hops, by_level, contract, link_loads, units_of
from .errors import ProfileError
from .recording import ASKED, KINDS, Exchanged, Profile, ProfileView

__all__ = ["check_hosts", "saving", "summarise"]


def summarise(
    profile: Profile,
    interface: TopologyInterface,
    view: ProfileView | None = None,
    most: int = 10,
    *,
    hint: bool = True,
) -> dict[str, Any]:
    """The summary that `topompi profile show` prints, as a dictionary of numbers and words for JSON.

    :param profile: a profile with as many ranks as the job.
    :param interface: the placement of the ranks, real or assumed.
    :param view: kind of units, and counted quantity; if it is None, the profile's own, or bytes by host if it has none.
    :param most: maximum number of rows for units, for links, and for neighbourhood calls.
    :param hint: True to search for a better order of the ranks, which takes some seconds.
    :raises ProfileError: if the job has another number of ranks.
    """
    check_hosts(profile, interface)
    hint = hint and profile.granularity == "process"  # a profile by host lacks the traffic between ranks
    graph, view = profile.graph(), view or profile.view_of(otherwise="host")
    return {
        "method": profile.method,
        "command": profile.command,
        "timed": profile.timed,
        "seconds": profile.seconds,
        "job": interface.describe(),
        "missing": list(profile.missing),
        "kinds": {words: total for letter, words in KINDS.items() if (total := profile.total(letter))[0]},
        "coverage": profile.coverage,
        "says": _says(profile),
        "hops": [_row(one) for one in by_hops(graph, interface)],
        "levels": [_row(one) for one in by_level(graph, interface)],
        **asdict(view),
        "units": _units(graph, interface, view, most),
        "links": _links(graph, interface, most),
        "neighbourhoods": [_exchanged(one) for one in profile.exchanged[:most]],
        "saving": saving(graph, interface) if hint else None,
    }


def _says(profile: Profile) -> list[str]:
    """Lines about data that the recording missed, and about its cost."""
    lines = []
    if profile.coverage is not None:
        seen = f"{100 * profile.coverage:.0f} %"
        lines.append(
            f"of the bytes of collectives, {seen} are messages of topompi's plans; the rest is what calls asked for"
            if ASKED in profile.moves
            else f"of the bytes that collectives were asked to move, {seen} were seen as messages"
        )
    if profile.counting:
        whole = f"{profile.counting * profile.most_calls:.2g} s on the rank with most calls"
        lines.append(f"counting took about {1e6 * profile.counting:.2f} us a call, {whole}")
    if profile.missing:
        lines.append(f"what {len(profile.missing)} of {profile.size} ranks sent is not known")
    return lines


def check_hosts(profile: Profile, interface: TopologyInterface) -> None:
    """Raise an error if a profile by host is shown on other hosts than its own, for which it has no data.

    :raises ProfileError: if the ranks are not on the hosts on which they were recorded.
    """
    on_hosts = [interface.hosts[host] for host in interface.rank_host.tolist()]
    if profile.granularity == "host" and profile.hosts and on_hosts != list(profile.hosts):
        raise ProfileError("expecting the hosts on which a profile by host was recorded, got others")


def _row(one: PairTraffic) -> dict[str, Any]:
    return {"class": one.name, "hops": one.hops, "messages": one.messages, "bytes": one.volume}


def _exchanged(one: Exchanged) -> dict[str, Any]:
    """The numbers of neighbourhood calls, with bytes of one call."""
    return {
        "call": one.name,
        "calls": one.times,
        "carried": one.carried,
        "edges": len(one.source),
        "most_edges": int(np.bincount(one.source).max(initial=0)),
        "bytes": int(one.volume.sum()) // max(one.times, 1),
    }


def _units(
    graph: CommunicationGraph, interface: TopologyInterface, view: ProfileView, most: int
) -> list[dict[str, object]]:
    """The units with most traffic; traffic within a unit is a separate number."""
    names, unit = units_of(interface, view.granularity)
    between = contract(graph, unit, len(names))
    amount, inner = between.messages if view.count == "messages" else between.volume, between.sources == between.targets
    sent, received, within = (
        np.bincount(index[chosen], amount[chosen], len(names))
        for index, chosen in ((between.sources, ~inner), (between.targets, ~inner), (between.sources, inner))
    )
    order = np.argsort(-(sent + received + within), kind="stable")[:most]
    return [
        {"unit": names[at], "sent": int(sent[at]), "received": int(received[at]), "within": int(within[at])}
        for at in order.tolist()
    ]


def _links(graph: CommunicationGraph, interface: TopologyInterface, most: int) -> list[dict[str, object]]:
    """The links whose loads need the most seconds; if rates are unknown, those with most bytes."""
    if interface.routes is None:
        return []
    loads, fabric = link_loads(graph, interface), interface.routes.fabric
    known = not np.isnan(fabric.link_rate).any()
    seconds = loads / fabric.link_rate if known else loads
    order = np.argsort(-seconds, kind="stable")[:most]
    return [
        {
            "link": fabric.link_names[at],
            "bytes": int(loads[at]),
            "seconds": float(seconds[at]) if known else None,
        }
        for at in order.tolist()
        if loads[at]
    ]


def saving(graph: CommunicationGraph, interface: TopologyInterface) -> dict[str, object] | None:
    """Hop-bytes of the given order and of the best order found on the same hosts; None if no data cross hosts.

    Hop-bytes are each message's bytes times its hops, summed. ``pays`` says whether the order found saves enough to be
    recommended, ``cut`` why the search ended early, or nothing.

    :param graph: communication graph of the ranks.
    :param interface: the placement of the ranks.
    """
    found = search(graph, interface, Aim(work=FIGURES))
    if not found.before.doubled:
        return None
    return {
        "hop_bytes_before": float(found.before.hop_bytes),
        "hop_bytes_after": float(found.after.hop_bytes),
        "ratio": found.after.doubled / found.before.doubled,
        "pays": found.taken,
        "cut": found.cut,
    }
