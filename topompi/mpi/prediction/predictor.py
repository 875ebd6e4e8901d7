"""Predicted times of topompi's schedules and of the MPI library's algorithms on a job's network."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schedules.algorithm import Algorithm
from ...schedules.alltoall.joint import all_joint, side_by_side
from ...schedules.analysis.bounds import lower_bound
from ...schedules.analysis.cost import cost
from ...schedules.analysis.model import Model
from ...schedules.network import Network, NoRouteError, SiblingGroups
from ...schedules.registry import ALGORITHMS, find_algorithm, make, properties
from ...schedules.schedule import Schedule
from ...schedules.segments import pieces_of
from ...topology import TopologyInterface
from ...views.network import UNKNOWN_RATE, network_of
from ..execution.specs import CALLS, Form
from .lanes import LaneCosts
from .libraries import KNOWN, CallShape, Library, LibraryAlgorithm
from .scope import unmodelled

if TYPE_CHECKING:
    from ...views.siblings import Siblings

__all__ = ["MOST_RANKS", "PAIRWISE", "Native", "Predictor", "is_sized"]

# Size of a call in bytes above which MPI libraries run algorithms for long messages: in alltoalls one partner per step,
# in MPICH (R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in MPICH, 2005)
# and in Open MPI.
PAIRWISE = 32768
CALL = 1e-6  # seconds that a call of topompi takes longer than the library's, because Python looks up its function
# Seconds by which topompi's messages start later than messages inside the library: with the loop in C, or without it.
MESSAGE = 0.1e-6 if find_spec("topompi.mpi.execution._compiled") else 2e-6
# Maximum number of ranks for which costly schedules are generated, and joint schedules of communicators that exchange
# at the same time. The job waits while they are generated.
MOST_RANKS = 256


@dataclass(frozen=True)
class Native:
    """The algorithm that the MPI library presumably runs for a call.

    :param says: description of the algorithm in words.
    :param seconds: predicted seconds.
    """

    says: str
    seconds: float


class JointAlltoalls:
    """Alltoalls of several groups of ranks at the same time.

    :param network: the network of all ranks.
    :param groups: the ranks of each group, shape (members,) each.
    """

    def __init__(self, network: Network, groups: tuple[NDArray[np.int64], ...]) -> None:
        self.network, self._groups = network, groups
        self._parts = SiblingGroups.each(network, groups)
        self._made: dict[str, Schedule] = {}

    def schedule(self, name: str) -> Schedule:
        """The joint schedule of all groups if each runs the algorithm of this name."""
        if name not in self._made:
            joint = all_joint(self.network, self._groups) if ALGORITHMS["alltoall"][name].joint else None
            parts = joint or [make("alltoall", name, part) for part in self._parts]
            self._made[name] = side_by_side(self._groups, parts, name)
        return self._made[name]


class Predictor:
    """The predicted times of algorithms on a job's network.

    :param interface: the placement of the ranks.
    :param library: model of the MPI library; if it is None, the fastest of the modelled libraries takes its place.
    :param siblings: the communicators that exchange at the same time, so that alltoalls are predicted for all together;
        None if there are none.
    :param model: start-up times and seconds per byte; by default those of networks with equally fast host links.
    """

    def __init__(
        self,
        interface: TopologyInterface,
        library: Library | None = None,
        siblings: Siblings | None = None,
        model: Model | None = None,
    ) -> None:
        self.interface, self.library = interface, library
        self._siblings, self._model = siblings, model
        self._made: dict[tuple[object, ...], Schedule] = {}

    @cached_property
    def network(self) -> Network:
        """The job's network. If all link rates are unknown, they are those of the machine Stampede (Subramoni 2013)."""
        return _with_rates(network_of(self.interface))

    @cached_property
    def together(self) -> JointAlltoalls | None:
        """The alltoalls of this communicator and its siblings, the communicators that exchange at the same time.

        None if there are no siblings, or too many ranks.
        """
        if self._siblings is None or sum(len(ranks) ** 2 for ranks in self._siblings.groups) > MOST_RANKS**2:
            return None
        return JointAlltoalls(_with_rates(self._siblings.network), self._siblings.groups)

    @cached_property
    def blind_network(self) -> Network:
        """The same ranks on the same hosts with all hosts on one switch, as the library sees the network."""
        return network_of(replace(self.interface, routes=None))

    @cached_property
    def _lanes(self) -> LaneCosts:
        return LaneCosts(self.network)

    @cached_property
    def _properties(self) -> frozenset[str]:
        return properties(self.network)

    def fits(self, algorithm: Algorithm) -> bool:
        """Whether an algorithm can differ from others on this network: those for slow hosts need slow hosts."""
        return not algorithm.needs or algorithm.needs in self._properties

    @cached_property
    def rate(self) -> float:
        """Rate in bytes/s of the fastest host link that the job uses; 0 on one host."""
        first = self.network.links[:, :, :1]
        return float(self.network.capacity[first[first >= 0]].max(initial=0.0))

    @cached_property
    def model(self) -> Model:
        """Start-up times and seconds per byte: the given model, or one for the rate of the host links."""
        return self._model or (Model.of_rate(self.rate) if self.rate else Model.preset("stampede"))

    @cached_property
    def inapplicable(self) -> str:
        """The reason why nothing can be predicted for this job; "" if it can."""
        if why := unmodelled(self.interface):
            return why
        if (network_of(self.interface).capacity == UNKNOWN_RATE).all():
            return "the topology source gives no rates of links"
        if self.interface.num_hosts == 1:
            return "one host"
        return ""

    def rank(self, method: str, nbytes: int, root: int, runs: Callable[[str], bool]) -> list[tuple[str, float]]:
        """The algorithms except native (the library's own) that can run a call, with predicted seconds, fastest first.

        If the size of calls is unknown, all seconds are NaN, and the order is the reverse of that in
        ``schedules.ALGORITHMS``, in which simple algorithms come first. In jobs of more than ``MOST_RANKS`` ranks, the
        seconds of algorithms whose schedules are costly to generate are NaN, and these algorithms come last.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
        :param root: the root of a rooted collective.
        :param runs: function of an algorithm's name; True if the algorithm can run the call.
        """
        collective = CALLS[method].collective
        names = [name for name in ALGORITHMS.get(collective, {}) if runs(name)]
        if not is_sized(method, nbytes):
            return [(name, float("nan")) for name in reversed(names)]
        many = self.interface.num_ranks > MOST_RANKS
        costly = [name for name in names if many and ALGORITHMS[collective][name].costly]
        costs = [(name, self.seconds(method, name, nbytes, root)) for name in names if name not in costly]
        return [*sorted(costs, key=lambda row: row[1]), *((name, float("nan")) for name in reversed(costly))]

    def seconds(self, method: str, name: str, nbytes: int, root: int) -> float:
        """Predicted seconds of an algorithm that topompi runs; infinite if it cannot run on this number of ranks.

        They are infinite, too, if it sends a message between two hosts that have no route.

        :param method: mpi4py's name of the call.
        :param name: name of the algorithm, with or without a segment size (``ring/32K``).
        :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
        :param root: the root of a rooted collective.
        """
        return CALL + self._by_messages(method, name, nbytes, root)

    def _by_messages(self, method: str, name: str, nbytes: int, root: int) -> float:
        collective, ranks = CALLS[method].collective, self.interface.num_ranks
        share = nbytes // ranks if collective in ("allreduce", "reduce_scatter") else nbytes
        pieces = pieces_of(collective, name, nbytes, share)
        known = find_algorithm(collective, pieces.name)
        if known.shares_links and ranks > MOST_RANKS:
            return self._at_its_bound(nbytes)
        if known.cut == "segments" and known.alone:  # an algorithm in lanes
            (_, across), _ = known.view(self.network, root)
            try:
                return self._lanes.seconds(collective, across, _of_ours(self.model), nbytes, root, pieces.blocks)
            except NoRouteError:
                return inf
        blocks = known.blocks_of(self.network, nbytes) if pieces.blocks is None else pieces.blocks
        return self._cost(collective, pieces.name, nbytes, root, blocks, pieces.slices)

    def native(self, method: str, nbytes: int, root: int, commutative: bool = True) -> Native:
        """The MPI library's algorithm and its predicted seconds; without a model, the fastest of all libraries.

        :param method: mpi4py's name of the call.
        :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
        :param root: the root of a rooted collective.
        :param commutative: True if a reduction's operation commutes.
        """
        question = CallShape(method, nbytes, np.asarray(self.interface.rank_host), commutative)
        libraries = KNOWN if self.library is None else (self.library,)
        decisions = [one for one in (library.decide(question) for library in libraries) if one is not None]
        if self.together is not None and CALLS[method].collective == "alltoall":
            decisions = []
        found = [Native(one.says, self.decided(one, nbytes, root)) for one in decisions]
        known = [one for one in found if one.seconds < inf]
        return min(known or self._blind(method, nbytes, root), key=lambda one: one.seconds)

    def decided(self, decision: LibraryAlgorithm, nbytes: int, root: int) -> float:
        """Predicted seconds of a library's algorithm; infinite if no schedule can describe it.

        :param decision: the algorithm.
        :param nbytes: size of the call in bytes, as in ``seconds``.
        :param root: the root of a rooted collective.
        """
        settings = pickle.dumps(sorted(decision.parameters.items()))  # hashable, even with arrays
        key = (decision.collective, decision.algorithm, decision.blocks, settings, root)
        try:
            schedule = self._kept(key, lambda: decision.schedule(self.blind_network, root))
        except ValueError:  # more blocks than a schedule can number
            return inf
        return self._on_network(schedule, decision.collective, nbytes, self.model)

    def _blind(self, method: str, nbytes: int, root: int) -> list[Native]:
        """The algorithms that MPI libraries choose without regard to switches, with their predicted seconds.

        They take the place of a library's algorithm that is not modelled.
        """
        length, uneven = "long" if nbytes > PAIRWISE else "short", self.interface.num_ranks.bit_count() > 1
        collective = CALLS[method].collective
        return [
            Native(f"{name}, which ignores switches", self._cost(collective, name, nbytes, root, blind=True))
            for name, one in ALGORITHMS[collective].items()
            if one.stand_in in ("any", length) and not (one.power_of_two and uneven)
        ]

    def _cost(
        self,
        collective: str,
        name: str,
        nbytes: int,
        root: int,
        blocks: int | None = None,
        slices: int = 1,
        *,
        blind: bool = False,
    ) -> float:
        model = self.model if blind else _of_ours(self.model)
        if self.together is not None and collective == "alltoall":
            return cost(self.together.schedule(name), self.together.network, model, nbytes, slices=slices).seconds
        network = self.blind_network if blind else self.network
        try:
            key = (collective, name, blocks, blind, root)
            schedule = self._kept(key, lambda: make(collective, name, network, root, blocks))
        except ValueError:  # a user's algorithm may refuse numbers of ranks
            return inf
        return self._on_network(schedule, collective, nbytes, model, slices)

    def _on_network(self, schedule: Schedule, collective: str, nbytes: int, model: Model, slices: int = 1) -> float:
        message = nbytes // self.interface.num_ranks if collective == "reduce_scatter" else nbytes
        block = max(1, -(-message // max(schedule.blocks, 1)))
        try:
            return cost(schedule, self.network, model, block, slices=slices).seconds
        except NoRouteError:  # a link has failed
            return inf

    def _kept(self, key: tuple[object, ...], made: Callable[[], Schedule]) -> Schedule:
        """A cached schedule. The cache has one collective and root at a time, because schedules are large."""
        if key not in self._made:
            if any((other[0], other[-1]) != (key[0], key[-1]) for other in self._made):
                self._made.clear()
            self._made[key] = made()
        return self._made[key]

    def _at_its_bound(self, nbytes: int) -> float:
        """The seconds of an alltoall that keeps the busiest link busy all the time, plus one start-up for each message.

        :param nbytes: bytes of one block.
        """
        model, messages = _of_ours(self.model), self.interface.num_ranks - 1
        bound = lower_bound(self.network, "alltoall", block_bytes=nbytes).seconds
        start = model.t_s[-1] if model.t_o is None else model.t_o
        return bound * model.t_w[-1] * self.rate + messages * start


def is_sized(method: str, nbytes: int) -> bool:
    """Whether the cost of calls can be predicted from their size; always True for a barrier, which sends no data.

    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes, as ``Selector.choose`` counts it; 0 if the ranks know no common size.
    """
    return nbytes > 0 or CALLS[method].form is Form.NOTHING


def _of_ours(model: Model) -> Model:
    """The cost model for messages that topompi starts, with longer start-up times than for the library's messages."""
    slower = tuple(start + MESSAGE for start in model.t_s)
    return replace(model, t_s=slower, t_o=None if model.t_o is None else model.t_o + MESSAGE)


def _with_rates(network: Network) -> Network:
    """The given network; if it has no link rates, the same network with all links as fast as in the default model."""
    if (network.capacity == UNKNOWN_RATE).all():
        return replace(network, capacity=np.full_like(network.capacity, 1 / Model.preset("stampede").t_w[-1]))
    return network
