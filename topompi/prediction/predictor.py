"""What schedules and the MPI library's own algorithms cost on a job's network, by ``schedules.cost``."""

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

from ..execution.specs import CALLS, LEVELS, Form
from ..schedules.alltoall.joint import all_joint, side_by_side
from ..schedules.analysis.bounds import lower_bound
from ..schedules.analysis.cost import cost
from ..schedules.analysis.model import Model
from ..schedules.network import Network, SiblingGroups
from ..schedules.registry import ALGORITHMS, find_algorithm, make
from ..schedules.schedule import Schedule
from ..schedules.segments import pieces_of
from ..topology import TopologyInterface
from ..views.network import UNKNOWN_RATE, network_of
from .lanes import LaneCosts
from .libraries import KNOWN, Decision, Library, Question
from .scope import unmodelled

if TYPE_CHECKING:
    from ..views.siblings import Siblings

__all__ = ["MOST_RANKS", "PAIRWISE", "Native", "Predictor", "is_sized"]

# Above so many bytes libraries exchange pair by pair: MPICH (R. Thakur, R. Rabenseifner and W. Gropp, Optimization of
# collective communication operations in MPICH, 2005) with a partner a step, and Open MPI likewise.
PAIRWISE = 32768
CALL = 1e-6  # seconds by which a call of ours is longer than the library's: Python finds what runs
# Seconds by which a message of ours starts later than one inside the library: by the loop in C, or without it.
MESSAGE = 0.1e-6 if find_spec("topompi.execution._compiled") else 2e-6
MOST_RANKS = 256  # whose costly schedules are made, and siblings' alltoalls costed together, while a job waits


@dataclass(frozen=True)
class Native:
    """What the MPI library is thought to run for a call.

    :param says: its algorithm in words.
    :param seconds: predicted.
    """

    says: str
    seconds: float


class Together:
    """Alltoalls of several groups of ranks at the same time.

    :param network: of all ranks.
    :param groups: ranks of each group.
    """

    def __init__(self, network: Network, groups: tuple[NDArray[np.int64], ...]) -> None:
        self.network, self._groups = network, groups
        self._parts = SiblingGroups.each(network, groups)
        self._made: dict[str, Schedule] = {}

    def schedule(self, name: str) -> Schedule:
        """What all groups do where each runs the algorithm of this name."""
        if name not in self._made:
            joint = all_joint(self.network, self._groups) if ALGORITHMS["alltoall"][name].joint else None
            parts = joint or [make("alltoall", name, part) for part in self._parts]
            self._made[name] = side_by_side(self._groups, parts, name)
        return self._made[name]


class Predictor:
    """Costs of the algorithms on a job's network.

    :param interface: where the ranks sit.
    :param library: the model of the MPI library; None where it is unknown: then the fastest of the libraries that have
        a model stands for it.
    :param siblings: the communicators that exchange at the same time: then alltoalls are costed all together.
    :param model: start-ups and bytes; by default those of networks whose host links are as fast.
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
        """The job's network; links of unknown rate are all as fast as Stampede's."""
        return _with_rates(network_of(self.interface))

    @cached_property
    def together(self) -> Together | None:
        """The alltoalls of this communicator and its siblings, if there are any and not too many."""
        if self._siblings is None or sum(len(ranks) ** 2 for ranks in self._siblings.groups) > MOST_RANKS**2:
            return None
        return Together(_with_rates(self._siblings.network), self._siblings.groups)

    @cached_property
    def blind_network(self) -> Network:
        """The same ranks on the same hosts, all on one switch: what the library sees."""
        return network_of(replace(self.interface, routes=None))

    @cached_property
    def _lanes(self) -> LaneCosts:
        return LaneCosts(self.network)

    @cached_property
    def rate(self) -> float:
        """Bytes/s of the fastest host link between two of the job's hosts; 0 on one host."""
        first = self.network.links[:, :, :1]
        return float(self.network.capacity[first[first >= 0]].max(initial=0.0))

    @cached_property
    def model(self) -> Model:
        """Start-ups and bytes: those given, or by the rate of the host links."""
        return self._model or (Model.of_rate(self.rate) if self.rate else Model.preset("stampede"))

    @cached_property
    def inapplicable(self) -> str:
        """Why nothing can be predicted for this job; empty where it can."""
        if why := unmodelled(self.interface):
            return why
        if (network_of(self.interface).capacity == UNKNOWN_RATE).all():
            return "the topology source gives no rates of links"
        if len(np.unique(self.network.leaf)) < 2:
            return "one leaf switch"
        return ""

    def rank(self, method: str, nbytes: int, root: int, runs: Callable[[str], bool]) -> list[tuple[str, float]]:
        """Algorithms but native that can run, with their seconds, the cheapest first; those over levels too.

        Without costs (NaN) where the sizes are not known: the registry's last ones first, for it begins with the simple
        ones. So are, above ``MOST_RANKS``, those that are costly to generate; they come last.

        :param method: mpi4py's name of the call.
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        :param runs: whether an algorithm can run for the call.
        """
        collective = CALLS[method].collective
        names = [name for name in (LEVELS, *ALGORITHMS.get(collective, {})) if runs(name)]
        if not is_sized(method, nbytes):
            return [(name, float("nan")) for name in reversed(names)]
        # of levels that no schedule stands for there is no model
        costed = [name for name in names if _modelled(collective, name) in ALGORITHMS[collective]]
        many = self.interface.num_ranks > MOST_RANKS
        costly = [name for name in costed if many and ALGORITHMS[collective][_modelled(collective, name)].costly]
        costs = [(name, self.seconds(method, name, nbytes, root)) for name in costed if name not in costly]
        # Of both that leaders' schedule stands for, the levels come first where their last stage is inside hosts: that
        # is the library's in shared memory. Between hosts the schedule is what the model knows.
        inside = self.interface.num_hosts < self.interface.num_ranks
        return [
            *sorted(costs, key=lambda row: (row[1], (row[0] == LEVELS) != inside)),
            *((name, float("nan")) for name in reversed(costly)),
        ]

    def seconds(self, method: str, name: str, nbytes: int, root: int) -> float:
        """What an algorithm takes that we run; infinite where it refuses the number of ranks.

        :param method: mpi4py's name of the call.
        :param name: of the algorithm, perhaps cut (``ring/32K``).
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        """
        return CALL + self._by_messages(method, name, nbytes, root)

    def _by_messages(self, method: str, name: str, nbytes: int, root: int) -> float:
        collective, ranks = CALLS[method].collective, self.interface.num_ranks
        share = nbytes // ranks if collective in ("allreduce", "reduce_scatter") else nbytes
        pieces = pieces_of(collective, _modelled(collective, name), nbytes, share)
        known = find_algorithm(collective, pieces.name)
        if known.shares_links and ranks > MOST_RANKS:
            return self._at_its_bound(nbytes)
        if known.cut == "segments":  # in lanes
            (_, across), _ = known.view(self.network, root)
            return self._lanes.seconds(collective, across, _of_ours(self.model), nbytes, root, pieces.blocks)
        return self._cost(collective, pieces.name, nbytes, root, pieces.blocks, pieces.lanes)

    def native(self, method: str, nbytes: int, root: int, commutative: bool = True) -> Native:
        """What the MPI library takes: by its model, or else what the fastest of the known libraries would take.

        :param method: mpi4py's name of the call.
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        :param commutative: whether a reduction's operation commutes.
        """
        question = Question(method, nbytes, np.asarray(self.interface.rank_host), commutative)
        libraries = KNOWN if self.library is None else (self.library,)
        decisions = [one for one in (library.decide(question) for library in libraries) if one is not None]
        if self.together is not None and CALLS[method].collective == "alltoall":
            decisions = []
        found = [Native(one.says, self._decided(one, nbytes, root)) for one in decisions]
        known = [one for one in found if one.seconds < inf]
        return min(known or self._blind(method, nbytes, root), key=lambda one: one.seconds)

    def _decided(self, decision: Decision, nbytes: int, root: int) -> float:
        """Seconds of what a library runs; infinite where no schedule can say."""
        settings = pickle.dumps(sorted(decision.parameters.items()))  # arrays may be among them
        key = (decision.collective, decision.algorithm, decision.blocks, settings, root)
        try:
            schedule = self._kept(key, lambda: decision.schedule(self.blind_network, root))
        except ValueError:  # more blocks than a schedule can number: nothing is known of such calls
            return inf
        return self._on_network(schedule, decision.collective, nbytes, self.model)

    def _blind(self, method: str, nbytes: int, root: int) -> list[Native]:
        """The algorithms that ignore switches, of which libraries have all."""
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
        lanes: int = 1,
        *,
        blind: bool = False,
    ) -> float:
        model = self.model if blind else _of_ours(self.model)
        if self.together is not None and collective == "alltoall":
            return cost(self.together.schedule(name), self.together.network, model, nbytes, lanes=lanes).seconds
        network = self.blind_network if blind else self.network
        try:
            key = (collective, name, blocks, blind, root)
            schedule = self._kept(key, lambda: make(collective, name, network, root, blocks))
        except ValueError:  # a user's algorithm may refuse numbers of ranks
            return inf
        return self._on_network(schedule, collective, nbytes, model, lanes)

    def _on_network(self, schedule: Schedule, collective: str, nbytes: int, model: Model, lanes: int = 1) -> float:
        message = nbytes // self.interface.num_ranks if collective == "reduce_scatter" else nbytes
        block = max(1, -(-message // max(schedule.blocks, 1)))
        return cost(schedule, self.network, model, block, lanes=lanes).seconds

    def _kept(self, key: tuple[object, ...], made: Callable[[], Schedule]) -> Schedule:
        """A schedule, those of one collective and root at a time: they are large."""
        if key not in self._made:
            if any((other[0], other[-1]) != (key[0], key[-1]) for other in self._made):
                self._made.clear()
            self._made[key] = made()
        return self._made[key]

    def _at_its_bound(self, nbytes: int) -> float:
        """Seconds of an alltoall that fills the busiest link: its bytes, and a start-up for each message."""
        model, messages = _of_ours(self.model), self.interface.num_ranks - 1
        bound = lower_bound(self.network, "alltoall", block_bytes=nbytes).seconds
        start = model.t_s[-1] if model.t_o is None else model.t_o
        return bound * model.t_w[-1] * self.rate + messages * start


def is_sized(method: str, nbytes: int) -> bool:
    """Whether calls have a size that can be costed; a barrier's messages are all empty.

    :param method: mpi4py's name of the call.
    :param nbytes: as ``Selector.choose`` counts them; 0 where ranks do not know the same size.
    """
    return nbytes > 0 or CALLS[method].form is Form.NOTHING


def _of_ours(model: Model) -> Model:
    """A model of messages that we start."""
    slower = tuple(start + MESSAGE for start in model.t_s)
    return replace(model, t_s=slower, t_o=None if model.t_o is None else model.t_o + MESSAGE)


def _modelled(collective: str, name: str) -> str:
    """The schedule by which an algorithm is costed; ``levels`` itself where none stands for them."""
    known = ALGORITHMS[collective].items()
    return next((other for other, one in known if one.as_levels), name) if name == LEVELS else name


def _with_rates(network: Network) -> Network:
    """Links of unknown rate as fast as the model's."""
    if (network.capacity == UNKNOWN_RATE).all():
        return replace(network, capacity=np.full_like(network.capacity, 1 / Model.preset("stampede").t_w[-1]))
    return network
