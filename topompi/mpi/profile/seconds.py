"""Predicted time of a program's messages on a network by simulated flows, without the program's computations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...mapping.graph import CommunicationGraph
from ...netsim import RECEIVE, SEND, Program, run
from ...schedules import Model
from ...schedules.network import Network
from ...topology import TopologyInterface
from ...views.network import network_of
from ...views.program import wiring_of
from .analysis import contract

__all__ = ["message_seconds", "rates_known"]

MOST_FLOWS = 4096  # maximum number of pairs that are simulated: pairs of ranks, or, if these are more, pairs of hosts
EXACT = 512  # maximum number of pairs whose flows are simulated exactly, because exact flows of more pairs take long
TOLERANCE = 0.01  # greatest error of a message's time, relative to it, if there are more than ``EXACT`` pairs
STARTS = 6  # number of random orders in which ranks begin; the time is the mean over them

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def rates_known(interface: TopologyInterface) -> bool:
    """Whether all link rates are known; without them no time can be computed."""
    return interface.routes is not None and not np.isnan(interface.routes.fabric.link_rate).any()


def message_seconds(
    graph: CommunicationGraph, interface: TopologyInterface, rank_host: Integers, model: Model | None = None
) -> float | None:
    """Predicted seconds of all messages between hosts; None if link rates are unknown or there are too many pairs.

    The program is modelled as sending in rounds; the number of rounds is the largest number of messages of a pair of
    ranks. In a round each rank starts its messages (``t_s`` seconds for the first, ``t_o`` for each other one), and
    their bytes share the links max-min fairly. In some libraries (``Model.rendezvous``; Open MPI over sockets) a long
    message waits for the receiver's answer, which is queued behind the receiver's own data. There the two directions of
    a pair take turns, except for the bytes sent with the request; the rank that begins goes first, and the time is the
    mean over ``STARTS`` random orders in which ranks begin.

    :param graph: communication graph of the ranks.
    :param interface: the hosts and links of the job.
    :param rank_host: host of each rank, shape (ranks,).
    :param model: the model of start-up times; if it is None, the model of networks with equally fast host links.

    Cost: a simulation with two flows per pair; six simulations with three if directions take turns.
    """
    if not rates_known(interface):
        return None
    network = network_of(interface)
    pairs = _Pairs.of(graph, rank_host)
    if len(pairs.source) > MOST_FLOWS:
        pairs = _Pairs.of(contract(graph, rank_host, interface.num_hosts), np.arange(interface.num_hosts))
    if not len(pairs.source) or len(pairs.source) > MOST_FLOWS:
        return 0.0 if not len(pairs.source) else None
    first = network.links[:, :, 0]
    model = model or Model.of_rate(float(network.capacity[first[first >= 0]].max()))
    return _start_ups(pairs, network, model) + _flowing(pairs, network, model)


@dataclass(frozen=True)
class _Pairs:
    """The traffic between units (ranks, or hosts if there are too many ranks) on different hosts, a row per pair.

    :param host: host of each unit, shape (units,).
    :param source: sending unit of each pair, shape (pairs,).
    :param target: receiving unit of each pair, shape (pairs,).
    :param messages: number of messages of each pair, shape (pairs,).
    :param volume: bytes of each pair, shape (pairs,).
    """

    host: Integers
    source: Integers
    target: Integers
    messages: Integers
    volume: Floats

    @classmethod
    def of(cls, graph: CommunicationGraph, host: Integers) -> _Pairs:
        crosses = (host[graph.sources] != host[graph.targets]) & (graph.messages > 0)
        columns = (graph.sources, graph.targets, graph.messages, graph.volume.astype(np.float64))
        return cls(host, *(column[crosses] for column in columns))

    def waiting(self, above: int) -> Floats:
        """Bytes of each pair that wait for the other direction: those beyond ``above`` per message, shape (pairs,)."""
        rest = np.maximum(self.volume - self.messages * float(above), 0.0)
        key, back = self.source * len(self.host) + self.target, self.target * len(self.host) + self.source
        order = np.argsort(key)
        place = order[np.minimum(np.searchsorted(key[order], back), len(key) - 1)]
        return np.where((key[place] == back) & (rest[place] > 0), rest, 0.0)


def _start_ups(pairs: _Pairs, network: Network, model: Model) -> float:
    """Seconds of the messages' start-ups, over all rounds."""
    rounds, units = int(pairs.messages.max()), len(pairs.host)
    hops = network.hops[pairs.host[pairs.source], pairs.host[pairs.target]]
    t_s, _ = model.by_hops(int(hops.max()))
    ends = [np.bincount(end, pairs.messages, units) for end in (pairs.source, pairs.target)]
    further = float(np.maximum(*ends).max()) - rounds
    return rounds * float(t_s[hops].max()) + further * float(t_s[-1] if model.t_o is None else model.t_o)


def _flowing(pairs: _Pairs, network: Network, model: Model) -> float:
    """Seconds until all bytes have arrived, as the mean over random orders in which units begin."""
    waiting = pairs.waiting(model.rendezvous.above) if model.rendezvous.waits else np.zeros(len(pairs.source))
    # Without latencies, because the seconds of the start-ups contain them.
    wiring = wiring_of(replace(network, latency=np.zeros_like(network.latency)))
    random, units = np.random.default_rng(0), len(pairs.host)
    starts = [random.permutation(units) for _ in range(STARTS)] if waiting.any() else [np.arange(units)]
    late = 0.0 if len(waiting) <= EXACT else TOLERANCE
    programs = (_program(pairs, waiting, one) for one in starts)
    return float(np.mean([run(wiring, [one], tolerance=late).job_seconds[0] for one in programs]))


def _program(pairs: _Pairs, waiting: Floats, start: Integers) -> Program:
    """A program to simulate: each pair of units sends the bytes that need not wait, then the rest, one direction first.

    :param pairs: the traffic.
    :param waiting: bytes of each pair that wait for the other direction, shape (pairs,).
    :param start: position of each unit in the order in which units begin, shape (units,).
    """
    low, high = np.minimum(pairs.source, pairs.target), np.maximum(pairs.source, pairs.target)
    _, connection = np.unique(low * len(pairs.host) + high, return_inverse=True)
    source = 2 * connection + (pairs.source > pairs.target)
    target = 2 * connection + (pairs.source < pairs.target)
    host = np.zeros(2 * (connection.max() + 1), dtype=np.int64)
    host[source], host[target] = pairs.host[pairs.source], pairs.host[pairs.target]
    turn = np.where(start[pairs.source] < start[pairs.target], 1, 2)
    waits = waiting > 0
    sender, receiver = (np.concatenate((end, end[waits])) for end in (source, target))
    return Program(
        host,
        rank=np.concatenate((sender, receiver)),
        step=np.tile(np.concatenate((np.zeros_like(turn), turn[waits])), 2),
        kind=np.repeat([SEND, RECEIVE], len(sender)),
        peer=np.concatenate((receiver, sender)),
        amount=np.tile(np.concatenate((pairs.volume - waiting, waiting[waits])), 2),
    )
