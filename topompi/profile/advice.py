"""What a program could gain on a network: by another mapping, by other schedules, and what is out of reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import CALLS, Form
from ..mapping.evaluate import Evaluation, evaluate
from ..mapping.graph import CommunicationGraph
from ..mapping.mappers.portfolio import best
from ..mapping.mapping import Mapping
from ..netsim import RECEIVE, SEND, Program, Wiring, run
from ..prediction.libraries import Library
from ..prediction.predictor import Predictor
from ..prediction.untuned import predict
from ..schedules.registry import ALGORITHMS
from ..topology import TopologyInterface
from ..views.machine import machine_of
from ..views.network import network_of
from .analysis import by_hops, contract
from .errors import ProfileError
from .recording import KINDS, Profile

__all__ = ["advise", "flow_seconds"]

SEARCH = 10.0  # seconds that the look for a better order may take
MOST_FLOWS = 4096  # pairs of hosts that are simulated

Integers = NDArray[np.int64]


def advise(profile: Profile, interface: TopologyInterface, library: Library | None = None) -> dict[str, Any]:
    """What `topompi profile advise` says, as numbers and words that JSON takes.

    :param profile: of as many ranks as the job has, by process.
    :param interface: where the ranks were, or might have been.
    :param library: the model of the MPI library; None where it is unknown: then the fastest of those with a model.
    :raises ProfileError: for a profile by host.
    Cost: some seconds for the look for a better order.
    """
    if profile.granularity != "process":
        raise ProfileError("expecting a profile by process, since ranks are to be moved, got one by host")
    graph = profile.graph()
    calls, unknown = _collectives(profile, interface, library)
    return {
        "job": interface.describe(),
        "method": profile.method,
        "traffic": _traffic(profile, interface),
        "mapping": _mapping(graph, interface),
        "collectives": calls,
        "out_of_reach": [*_out_of_reach(profile, graph, interface), *unknown],
    }


def _traffic(profile: Profile, interface: TopologyInterface) -> list[dict[str, Any]]:
    """Bytes by kind of call and hop class."""
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


def _mapping(graph: CommunicationGraph, interface: TopologyInterface) -> dict[str, Any] | None:
    """The given order and the best one found on the same hosts; None where nothing crosses hosts."""
    machine = machine_of(interface)
    given = Mapping.on_hosts(interface.rank_host, machine)
    before = evaluate(given, graph, machine)
    if not before.doubled:
        return None
    found = best(graph, machine, given=given, seconds=SEARCH)
    return {
        "before": _cost(before, graph, interface, interface.rank_host.astype(np.int64)),
        "after": _cost(evaluate(found, graph, machine), graph, interface, found.host_of_rank),
    }


def _cost(
    found: Evaluation, graph: CommunicationGraph, interface: TopologyInterface, rank_host: Integers
) -> dict[str, Any]:
    known = _rates_known(interface)
    return {
        "hop_bytes": float(found.hop_bytes),
        "within_hosts": found.intra_share,
        "busiest_link_bytes": found.link_load if known else None,
        "busiest_link_seconds": found.link_seconds if known else None,
        "flow_seconds": flow_seconds(graph, interface, rank_host),
    }


def _rates_known(interface: TopologyInterface) -> bool:
    return interface.routes is not None and not np.isnan(interface.routes.fabric.link_rate).any()


def flow_seconds(graph: CommunicationGraph, interface: TopologyInterface, rank_host: Integers) -> float | None:
    """Seconds for all that crosses hosts, sent at once, by max-min fair flows; None without rates or for too much.

    What a program computes between its messages is not known: it is the time of a program that only communicates.

    :param graph: between ranks.
    :param interface: the job's hosts and links.
    :param rank_host: host of each rank, shape (p,).
    """
    between = contract(graph, rank_host, interface.num_hosts)
    crosses = (between.sources != between.targets) & (between.volume > 0)
    if not _rates_known(interface) or crosses.sum() > MOST_FLOWS:
        return None
    network, hosts = network_of(interface), np.arange(interface.num_hosts)
    source, target, volume = (each[crosses] for each in (between.sources, between.targets, between.volume))
    program = Program(
        hosts,
        rank=np.concatenate((source, target)),
        step=np.zeros(2 * len(source), dtype=np.int64),
        kind=np.repeat([SEND, RECEIVE], len(source)),
        peer=np.concatenate((target, source)),
        amount=np.tile(volume.astype(np.float64), 2),
    )
    wiring = Wiring(network.capacity, np.nan_to_num(network.latency), network.links)
    return float(run(wiring, [program]).job_seconds[0])


def _collectives(
    profile: Profile, interface: TopologyInterface, library: Library | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Calls for which another schedule is predicted to be faster or not, and why others have no prediction."""
    calls = next((one.calls for one in profile.of_rank if one.calls), ())
    if not calls:
        return [], ["schedules of collectives: sizes of calls were not recorded (only mpi4py's recording has them)"]
    predictor = Predictor(replace(interface, virtual=False), library)
    if predictor.inapplicable:
        return [], [f"schedules of collectives: {predictor.inapplicable}"]
    found, parts, uneven = [], 0, 0
    for call in calls:
        spec = CALLS.get(call.name)
        if spec is None or spec.form is Form.NOTHING or not call.nbytes:
            continue
        if call.ranks != profile.size:
            parts += call.times
        elif spec.local or spec.collective not in ALGORITHMS:
            uneven += call.times
        else:
            found.append(_prediction(predictor, call.name, call.nbytes, call.times))
    why = [f"{parts:,} collective calls on parts of the ranks: which ranks these were is not recorded"] if parts else []
    why += [f"{uneven:,} collective calls with blocks of unlike sizes: no prediction from a mean"] if uneven else []
    return sorted(found, key=lambda one: -one["native_seconds"] * one["calls"]), why


def _prediction(predictor: Predictor, name: str, nbytes: int, times: int) -> dict[str, Any]:
    algorithms = ALGORITHMS[CALLS[name].collective]
    said = predict(predictor, name, nbytes, 0, lambda algorithm: algorithm.partition("/")[0] in algorithms)
    assert said.native is not None  # the predictor applies: the caller asked
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
    if not _rates_known(interface):
        why.append("seconds: the topology source does not give the rates of all links")
    if profile.missing:
        why.append(f"what {len(profile.missing)} of {profile.size} ranks sent is not known")
    return why
