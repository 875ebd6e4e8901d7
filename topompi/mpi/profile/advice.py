"""Advice on a recorded program: seconds that it could save by another order of its ranks or by other algorithms.

The advice also names the traffic that neither of them can improve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mapping.evaluate import Evaluation, evaluate
from ...mapping.graph import CommunicationGraph
from ...schedules import Model
from ...schedules.registry import ALGORITHMS
from ...topology import TopologyInterface
from ...views.machine import machine_of
from ...views.reordering import FIGURES, Aim, search
from ..execution.specs import CALLS
from ..prediction.libraries import Library
from ..prediction.predictor import Predictor
from ..prediction.untuned import predict
from .analysis import by_hops
from .errors import ProfileError
from .neighbouradvice import exchange_advice
from .recording import ASKED, KINDS, Call, Profile
from .seconds import message_seconds, rates_known

__all__ = ["advise", "seconds_by_order"]

# Reasons why collective calls have no prediction: key, and end of a sentence that begins with their number.
EXCLUDED = {
    "parts": "on parts of the ranks: which ranks these were is not recorded",
    "uneven": "with blocks of unlike sizes: no prediction from a mean",
    "neighbours": "among neighbours: their edges were not recorded",
    "library": "that topompi leaves to the MPI library: non-blocking, or on objects",
}

Integers = NDArray[np.int64]


def advise(profile: Profile, interface: TopologyInterface, library: Library | None = None) -> dict[str, Any]:
    """The advice that `topompi profile advise` prints, as a dictionary of numbers and words for JSON.

    :param profile: a profile by process, with as many ranks as the job.
    :param interface: the placement of the ranks, real or assumed.
    :param library: the model of the MPI library; if it is None, the fastest modelled library takes its place.
    :raises ProfileError: if the profile is by host.

    Cost: some seconds for the search for a better order.
    """
    if profile.granularity != "process":
        raise ProfileError("expecting a profile by process, since ranks are to be moved, got one by host")
    graph = profile.graph()
    calls, unknown = _collectives(profile, interface, library)
    mapping, exchanges = _mapping(profile, interface, library), exchange_advice(profile, interface)
    return {
        "job": interface.describe(),
        "method": profile.method,
        "traffic": _traffic(profile, interface),
        "mapping": mapping,
        "operations": _operations(mapping, calls),
        "collectives": calls,
        "neighbourhoods": exchanges,
        "launcher": _launcher(calls, exchanges),
        "out_of_reach": [*_out_of_reach(profile, graph, interface), *unknown],
    }


def _traffic(profile: Profile, interface: TopologyInterface) -> list[dict[str, object]]:
    """Messages and bytes by kind of traffic (see ``KINDS``) and number of hops, as rows for JSON."""
    total = profile.sent[1] or 1
    return [
        {
            "kind": KINDS[kind],
            "class": one.name,
            "messages": one.messages,
            "bytes": one.volume,
            "share": one.volume / total,
        }
        for kind in profile.moves
        for one in by_hops(profile.graph(kind), interface)
        if one.messages
    ]


def _operations(mapping: dict[str, Any] | None, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Predicted seconds of all messages, and of each collective, in the job's present order of ranks, longest first.

    The list is empty if the seconds are unknown.
    """
    if mapping is None or mapping["before"]["seconds"] is None:
        return []
    rows = [("messages", mapping["before"]["message_seconds"])]
    for name in dict.fromkeys(call["call"] for call in calls if mapping["before"]["collective_seconds"]):
        rows.append((name, sum(call["native_seconds"] * call["calls"] for call in calls if call["call"] == name)))
    total = sum(seconds for _, seconds in rows) or 1.0
    rows.sort(key=lambda row: -row[1])
    return [{"operation": name, "seconds": seconds, "share": seconds / total} for name, seconds in rows]


def _mapping(profile: Profile, interface: TopologyInterface, library: Library | None) -> dict[str, Any] | None:
    """The costs of the job's order of ranks (``before``), and of the best order found on the same hosts (``after``).

    ``pays`` says whether the order found saves enough hop-bytes, and is not ``slower`` by the models; ``cut`` why the
    search ended early, or nothing. The result is None if no data are sent between hosts.
    """
    graph = profile.graph()
    found = search(graph, interface, Aim(work=FIGURES))
    if not found.before.doubled:
        return None
    routed = machine_of(interface)
    evaluated = [evaluate(order, graph, routed) for order in (found.given, found.best)]
    seconds = seconds_by_order(profile, interface, (found.given.host_of_rank, found.best.host_of_rank), library)
    before, after = (_cost(one, interface, taken) for one, taken in zip(evaluated, seconds, strict=True))
    falls = after["seconds"] is None or after["seconds"] < before["seconds"]
    verdict = {"pays": found.taken and falls, "slower": found.taken and not falls}
    return {"before": before, "after": after, **verdict, "cut": found.cut}


def _launcher(calls: list[dict[str, Any]], exchanges: list[dict[str, Any]]) -> dict[str, float]:
    """Predicted seconds of all calls that topompi can run: by the MPI library, and by the algorithms of the model."""
    rows = [(row["calls"], row["native_seconds"], row["seconds"]) for row in calls]
    rows += [(row["calls"], row["edge_seconds"], row["seconds"]) for row in exchanges]
    return {
        "native_seconds": sum(times * native for times, native, _ in rows),
        "seconds": sum(times * ours for times, _, ours in rows),
    }


def _cost(found: Evaluation, interface: TopologyInterface, seconds: tuple[float, float] | None) -> dict[str, Any]:
    known = rates_known(interface)
    return {
        "hop_bytes": float(found.hop_bytes),
        "within_hosts": found.intra_share,
        "busiest_link_bytes": found.link_load if known else None,
        "busiest_link_seconds": found.link_seconds if known else None,
        "message_seconds": seconds[0] if seconds else None,
        "collective_seconds": seconds[1] if seconds else None,
        "seconds": sum(seconds) if seconds else None,
    }


def seconds_by_order(
    profile: Profile,
    interface: TopologyInterface,
    orders: Sequence[Integers],
    library: Library | None = None,
    model: Model | None = None,
) -> list[tuple[float, float] | None]:
    """For each order of the ranks, the predicted seconds of messages and of collective calls.

    An entry is None if the seconds of messages cannot be predicted, for example because link rates are unknown.
    Collective calls are predicted only if all of them can be predicted. Otherwise their seconds are 0, and the bytes
    that they ask to move are predicted as messages.

    :param profile: a profile by process.
    :param interface: the hosts and links of the job.
    :param orders: one array per order, of shape (ranks,), with the number of each rank's host.
    :param library: the model of the MPI library; if it is None, the fastest modelled library takes its place.
    :param model: the model of start-up times; if it is None, the model of networks with equally fast host links.
    """
    calls, others = _even_calls(profile)
    predictable = not Predictor(replace(interface, virtual=False), library).inapplicable
    applies = bool(calls) and not any(others.values()) and predictable
    graph = profile.graph(profile.moves.replace(ASKED, "") if applies else None)
    found: list[tuple[float, float] | None] = []
    for order in orders:
        messages = message_seconds(graph, interface, order, model)
        hosts = [interface.hosts[host] for host in order.tolist()]
        predictor = Predictor(TopologyInterface.place(hosts, interface.routes), library, model=model)
        collective = sum(
            call.times * predictor.native(call.name, call.nbytes, 0).seconds for call in (calls if applies else [])
        )
        found.append(None if messages is None else (messages, collective))
    return found


def _even_calls(profile: Profile) -> tuple[list[Call], dict[str, int]]:
    """Collective calls in which all ranks take part with equal blocks; and the number of all other calls, by reason.

    The reasons for which calls are excluded are the keys of ``EXCLUDED``.
    """
    even, others = [], dict.fromkeys(EXCLUDED, 0)
    for call in _calls_of(profile):
        spec = CALLS.get(call.name)
        if spec is None:
            others["neighbours" if "eighbor_" in call.name else "library"] += call.times
        elif call.ranks != profile.size:
            others["parts"] += call.times
        elif spec.local or spec.collective not in ALGORITHMS:
            others["uneven"] += call.times
        else:
            even.append(call)
    return even, others


def _calls_of(profile: Profile) -> list[Call]:
    """The collective calls that moved data, each counted once: a row per name, number of ranks and size of a call.

    Every rank that takes part in a call records it, but if Python objects are sent, only the root knows their size.
    Therefore, for each name and number of ranks, only the rows of one rank are returned, that with the most calls of
    known size.
    """
    best: dict[tuple[str, int], list[Call]] = {}
    for one in profile.of_rank:
        known: dict[tuple[str, int], list[Call]] = defaultdict(list)
        for call in one.calls:
            if call.nbytes:
                known[call.name, call.ranks].append(call)
        for key, calls in known.items():
            best[key] = max(best.get(key, []), calls, key=_times)
    return [call for calls in best.values() for call in calls]


def _times(calls: list[Call]) -> int:
    return sum(call.times for call in calls)


def _collectives(
    profile: Profile, interface: TopologyInterface, library: Library | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Collective calls with predicted seconds per algorithm, longest first; and why other calls have no prediction."""
    if not any(one.calls for one in profile.of_rank):
        if not profile.total("I" + ASKED)[0]:
            return [], []  # no bytes of collectives: the program made no collective call, and nothing is left out
        return [], ["schedules of collectives: sizes of calls were not recorded (only mpi4py's recording has them)"]
    predictor = Predictor(replace(interface, virtual=False), library)
    if predictor.inapplicable:
        return [], [f"schedules of collectives: {predictor.inapplicable}"]
    calls, others = _even_calls(profile)
    found = [_prediction(predictor, call.name, call.nbytes, call.times) for call in calls]
    if profile.exchanged:
        others["neighbours"] = 0  # these have advice of their own
    why = [f"{times:,} collective calls {EXCLUDED[reason]}" for reason, times in others.items() if times]
    return sorted(found, key=lambda one: -one["native_seconds"] * one["calls"]), why


def _prediction(predictor: Predictor, name: str, nbytes: int, times: int) -> dict[str, Any]:
    algorithms = ALGORITHMS[CALLS[name].collective]

    def runs(algorithm: str) -> bool:
        return algorithm.partition("/")[0] in algorithms

    said = predict(predictor, name, nbytes, 0, runs, always_native=True)
    assert said.native is not None  # because the caller returns early if the predictor is inapplicable
    taken = {"native": said.native.seconds, **dict(said.ours)}.get(said.algorithm, said.native.seconds)
    return {
        "call": name,
        "bytes": nbytes,
        "calls": times,
        "native": said.native.says,
        "native_seconds": float(said.native.seconds),
        "algorithm": said.algorithm,
        "seconds": float(taken),
        "reason": said.reason,
    }


def _out_of_reach(profile: Profile, graph: CommunicationGraph, interface: TopologyInterface) -> list[str]:
    total = graph.volume.sum() or 1
    within = interface.rank_host[graph.sources] == interface.rank_host[graph.targets]
    why = [f"{100 * graph.volume[within].sum() / total:.0f} % of the bytes stay within hosts: no link carries them"]
    if not rates_known(interface):
        why.append("seconds: the topology source does not give the rates of all links")
    if profile.missing:
        why.append(f"what {len(profile.missing)} of {profile.size} ranks sent is not known")
    return why
