"""What the cost model says where nothing has been measured: whether a schedule of ours is worth leaving native for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..schedules.alltoall.dcss import DEFAULT, dcss
from ..schedules.alltoall.joint import all_joint, side_by_side
from ..schedules.analysis.model import Model, cost
from ..schedules.network import Network, SiblingGroups
from ..schedules.registry import ALGORITHMS, make
from ..schedules.schedule import Schedule
from ..topology import TopologyInterface
from ..views.network import UNKNOWN_RATE, network_of
from .choice import Choice
from .classes import COLLECTIVE, LEVELS, NATIVE, PAIRWISE

if TYPE_CHECKING:
    from ..views.siblings import Siblings

__all__ = ["GAIN", "SLOW_GAIN", "Predictor"]

GAIN = 1.2  # what must be predicted to leave native: the model is not exact, and knows native by a stand-in only
SLOW_GAIN = 4 / 3  # the same where start-ups are a guess too: at 1.2 some choices were slower on emulated Ethernet
SLOW = 10.0  # times the preset's start-ups: slower than on any InfiniBand
OVERHEAD = 2e-6  # seconds that a message of ours takes longer to start than one inside the library: Python's
MOST_RANKS = 256  # whose costly schedules are made, and siblings' alltoalls costed together, while a job waits


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
    """Costs of the algorithms on a job's network, by ``schedules.cost``.

    Start-ups follow the reference's Stampede, bytes the fabric's fastest host link. There is no model of the MPI
    library: the best topology-blind algorithm, costed on the true network, stands in for it.

    :param interface: where the ranks sit.
    :param siblings: the communicators that exchange at the same time: then alltoalls are costed all together.
    """

    def __init__(self, interface: TopologyInterface, siblings: Siblings | None = None) -> None:
        self.interface = interface
        self._siblings = siblings
        self._made: dict[tuple[str, str, int, bool], Schedule] = {}

    @cached_property
    def network(self) -> Network:
        """The job's network; links of unknown rate are all as fast as the model's."""
        return _with_rates(network_of(self.interface))

    @cached_property
    def together(self) -> Together | None:
        """The alltoalls of this communicator and its siblings, if there are any and not too many."""
        if self._siblings is None or sum(len(ranks) ** 2 for ranks in self._siblings.groups) > MOST_RANKS**2:
            return None
        return Together(_with_rates(self._siblings.network), self._siblings.groups)

    @cached_property
    def blind_network(self) -> Network:
        """The same ranks on the same hosts, all on one switch."""
        return network_of(replace(self.interface, routes=None))

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The preset with the bytes of the fabric's fastest host link between hosts; where that is slower, two of them.

        Networks that are slow are slow to start as well, but how slow? In the first model the bytes that take as long
        as a start-up are the preset's (the half-performance length of R. W. Hockney, The communication challenge for
        MPP, 1994), in the second one the start-ups are: in between lie a library's TCP and the link's own latency. In
        the first it is the hosts that are slow to start, however many switches a message crosses.
        """
        first = self.network.links[:, :, :1]
        fastest = float(self.network.capacity[first[first >= 0]].max(initial=0.0))
        preset = Model.preset("stampede")
        if not fastest:
            return (preset,)
        quick = replace(preset, t_w=(preset.t_w[0], *(1 / fastest,) * (len(preset.hops) - 1)))
        slower = 1 / fastest / preset.t_w[-1]
        if slower <= 1:
            return (quick,)
        start = slower * preset.t_s[1]
        return replace(quick, t_s=(preset.t_s[0], *(start,) * (len(preset.t_s) - 1))), quick

    @property
    def gain(self) -> float:
        """What must be predicted to leave native."""
        starts = self.models[0].t_s[1], self.models[-1].t_s[1]
        return SLOW_GAIN if starts[0] > SLOW * starts[1] else GAIN

    @cached_property
    def inapplicable(self) -> str:
        """Why the model does not apply to this job; empty where it does."""
        if self.interface.virtual:
            return "a virtual placement, whose links are not those that the ranks run on"
        if self.interface.routes is None:
            return "nothing is known above the hosts"
        if len(np.unique(self.network.leaf)) < 2:
            return "one leaf switch"
        return ""

    def choose(self, method: str, nbytes: int, root: int, runs: Callable[[str], bool]) -> Choice:
        """The choice for a class of calls by the model alone.

        :param method: mpi4py's name of the call.
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        :param runs: whether an algorithm can run for the call.
        """
        if self.inapplicable or not nbytes:
            return Choice(NATIVE, f"native: {self.inapplicable or 'nothing by which a call could be costed'}")
        if COLLECTIVE[method] == "alltoall":
            return self._choose_alltoall(method, nbytes, root, runs)
        return self._compare(method, nbytes, root, runs, self.gain, "")

    def _choose_alltoall(self, method: str, nbytes: int, root: int, runs: Callable[[str], bool]) -> Choice:
        """DCSS decides; a long message needs no predicted gain then, for the model has no loss where links are shared.

        Subramoni 2013, chapter 6, measured what the model does not show: ranks that drift apart meet on links.
        """
        scheme = dcss(self.network)
        if scheme.algorithm == DEFAULT:
            return Choice(NATIVE, f"native: DCSS: {scheme.reason}")
        if self.together is not None and nbytes > PAIRWISE:
            # What is free of conflicts is so in step only; ranks that drift are held together by steps that fill links.
            first = next(name for name, one in ALGORITHMS["alltoall"].items() if one.joint)
            return self._compare(method, nbytes, root, lambda name: name == first and runs(name), 1.0, "siblings; ")
        if self.interface.num_ranks > MOST_RANKS and nbytes > PAIRWISE and runs(scheme.algorithm):
            return Choice(scheme.algorithm, f"DCSS: {scheme.reason}")
        least = 1.0 if nbytes > PAIRWISE else self.gain
        return self._compare(method, nbytes, root, runs, least, f"DCSS: {scheme.reason}; ")

    def _compare(
        self, method: str, nbytes: int, root: int, runs: Callable[[str], bool], least: float, words: str
    ) -> Choice:
        """The algorithm with the greatest gain over what ignores switches, where that is so much at least, else native.

        The gain is that in the model where it is least.
        """
        ranking = [row for row in self.rank(method, nbytes, root, runs) if not np.isnan(row[1])]
        (blind, native), *others = (self.stand_in(method, nbytes, root, model) for model in self.models)
        if not ranking:
            return Choice(NATIVE, "native: only candidate", native)
        gains = [native / seconds for _, seconds in ranking]
        for (_, other), model in zip(others, self.models[1:], strict=True):
            ours = [self._ours(method, name, nbytes, root, model) for name, _ in ranking]
            gains = [min(gain, other / seconds) for gain, seconds in zip(gains, ours, strict=True)]
        most = int(np.argmax(gains))
        best, seconds = ranking[most]
        says = f"cost model: {best} {gains[most]:.2f}x as fast as {blind}, which ignores switches"
        if gains[most] < least:
            return Choice(NATIVE, f"native: {says}", native)
        return Choice(best, f"{words}{says}", seconds)

    def rank(self, method: str, nbytes: int, root: int, runs: Callable[[str], bool]) -> list[tuple[str, float]]:
        """Algorithms but native that can run, with their seconds, the cheapest first; those over levels too.

        Without costs (NaN) where the sizes are not known: the registry's last ones first, for it begins with the simple
        ones. So are, above ``MOST_RANKS``, those that are costly to generate; they come last.

        :param method: mpi4py's name of the call.
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        :param runs: whether an algorithm can run for the call.
        """
        collective = COLLECTIVE[method]
        names = [name for name in (LEVELS, *ALGORITHMS.get(collective, {})) if runs(name)]
        if not nbytes:
            return [(name, float("nan")) for name in reversed(names)]
        # of levels that no schedule stands for there is no model
        costed = [name for name in names if _modelled(collective, name) in ALGORITHMS[collective]]
        many = self.interface.num_ranks > MOST_RANKS
        costly = [name for name in costed if many and ALGORITHMS[collective][_modelled(collective, name)].costly]
        costed = [name for name in costed if name not in costly]
        costs = [(name, self._ours(method, name, nbytes, root, self.models[0])) for name in costed]
        # Of both that leaders' schedule stands for, the levels come first where their last stage is inside hosts: that
        # is the library's in shared memory. Between hosts the schedule is what the model knows.
        inside = self.interface.num_hosts < self.interface.num_ranks
        return [
            *sorted(costs, key=lambda row: (row[1], (row[0] == LEVELS) != inside)),
            *((name, float("nan")) for name in reversed(costly)),
        ]

    def _ours(self, method: str, name: str, nbytes: int, root: int, model: Model) -> float:
        """Seconds of an algorithm that we run."""
        slower = replace(model, t_s=tuple(start + OVERHEAD for start in model.t_s))
        return self._cost(method, _modelled(COLLECTIVE[method], name), nbytes, root, slower)

    def stand_in(self, method: str, nbytes: int, root: int, model: Model) -> tuple[str, float]:
        """The fastest algorithm that ignores switches, and its seconds on this network, by a model.

        :param method: mpi4py's name of the call.
        :param nbytes: as ``Selector.choose`` counts them.
        :param root: of a rooted collective.
        :param model: start-up and per-byte times by hops.
        """
        length, uneven = "long" if nbytes > PAIRWISE else "short", self.interface.num_ranks.bit_count() > 1
        names = [
            name
            for name, one in ALGORITHMS[COLLECTIVE[method]].items()
            if one.stand_in in ("any", length) and not (one.power_of_two and uneven)
        ]
        seconds, name = min((self._cost(method, name, nbytes, root, model, blind=True), name) for name in names)
        return name, seconds

    def _cost(self, method: str, name: str, nbytes: int, root: int, model: Model, *, blind: bool = False) -> float:
        collective = COLLECTIVE[method]
        if self.together is not None and collective == "alltoall":
            return cost(self.together.schedule(name), self.together.network, model, nbytes).seconds
        key = (collective, name, root, blind)
        if key not in self._made:
            if any(kept[::2] != key[::2] for kept in self._made):  # one collective and root at a time: they are large
                self._made.clear()
            try:
                self._made[key] = make(collective, name, self.blind_network if blind else self.network, root)
            except ValueError:  # a user's algorithm may refuse numbers of ranks
                return float("inf")
        schedule = self._made[key]
        message = nbytes // self.interface.num_ranks if collective == "reduce_scatter" else nbytes
        return cost(schedule, self.network, model, max(1, -(-message // max(schedule.blocks, 1)))).seconds


def _modelled(collective: str, name: str) -> str:
    """The schedule by which an algorithm is costed; ``levels`` itself where none stands for them."""
    known = ALGORITHMS[collective].items()
    return next((other for other, one in known if one.as_levels), name) if name == LEVELS else name


def _with_rates(network: Network) -> Network:
    """Links of unknown rate as fast as the model's."""
    if (network.capacity == UNKNOWN_RATE).all():
        return replace(network, capacity=np.full_like(network.capacity, 1 / Model.preset("stampede").t_w[-1]))
    return network
