"""What is true of an algorithm: how its schedule is made, what it can do, and when it wins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Literal

from numpy.typing import ArrayLike

from .alltoall.hostschedule import HostSchedule
from .network import Network
from .schedule import Schedule

__all__ = ["FORMER_NAMES", "Algorithm", "View", "current_name", "takes_network"]

View = Callable[[Network, int], tuple[tuple[Any, ...], dict[str, Any]]]

# Names that algorithms had, and the present ones: files of earlier versions are still read. No new algorithm takes one.
FORMER_NAMES = {"bound": "colouring"}


def current_name(algorithm: str) -> str:
    """The present name of an algorithm that may be given by a former one, perhaps cut (``bound/32K``)."""
    name, slash, size = algorithm.partition("/")
    return FORMER_NAMES.get(name, name) + slash + size


def takes_network(network: Network, root: int) -> tuple[tuple[Network], dict[str, Any]]:
    """The view of a generator whose one positional argument is the network."""
    return (network,), {}


@dataclass(frozen=True)
class Algorithm:
    """A generator, what it takes of a network, and the facts by which callers choose algorithms.

    :param generator: the function that makes the schedule; its docstring has the paper and the cost.
    :param view: from a network and a root to the generator's arguments; by default the network itself.
    :param when: for what or where it wins, in one line.
    :param fixed: keyword parameters that make it this algorithm and no other of the same generator.
    :param cut: how its messages may be cut: ``blocks`` if the generator divides a message into as many blocks as one
        asks for, and sends them one by one; ``segments`` if ``blocks`` is how many of them follow one another, each in
        blocks of its own; ``lanes`` if every transfer of a message is one rank's share, so that each
        part of a share can travel by itself; None if they may not.
    :param segments: worthwhile bytes to cut messages to, each with the numbers of parts for which it is worthwhile.
    :param local_counts: whether a rank needs to know only its own counts: every message is one pair's whole block,
        straight from the input to the output.
    :param host_counts: whether an exchange of uneven blocks can run where ranks know only their own counts, because
        those of a host tell each other, and messages tell other hosts.
    :param keeps_order: of reductions: whether operands are combined in rank order from root 0, where ranks are placed
        in the order of the network. Placed otherwise, ``check`` decides.
    :param whole: whether a reduction always applies its operation to whole vectors, never to pieces.
    :param alone: name of the algorithm to which this one, made for several ranks a host, is equal if each host has one
        rank; in lanes hosts run it. Empty for all other algorithms.
    :param joint: whether it is made together with the exchanges of ``Network.siblings``.
    :param shares_links: whether each step gives the busiest link its share of the whole exchange, more than one
        message, and no link more than that, rounded up: links are then full although ranks are in different steps.
    :param stand_in: whether MPI libraries that know no switches run it: for messages of ``any`` length, or only for
        ``short`` or ``long`` ones; empty if they do not.
    :param power_of_two: whether it takes more steps than it needs on other numbers of ranks.
    :param as_levels: whether it is the schedule of what ``levels`` runs, by which the cost of that is known.
    :param trial: whether trials try it.
    :param default: bytes of a call from which it may be chosen where nothing was measured: calls so long did not lose
        by it on emulated networks with 16 ranks (docs/lab/untuned.md). Of those predicted alike the one with the
        largest runs. Infinite where it never may.
    :param logarithmic: whether its steps grow with the logarithm of the number of ranks. Of the others that divide a
        message among ranks, calls have to be longer on more ranks before they may be chosen: their parts get shorter.
    :param costly: whether generating it takes far longer than making one rank's rows of it. One rank does it for all
        then, so it depends on the network alone, not on a root, blocks or counts; it can be pickled.
    """

    generator: Callable[..., Schedule | HostSchedule]
    view: View = takes_network
    when: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    cut: Literal["blocks", "segments", "lanes"] | None = None
    segments: Mapping[int, range] = field(default_factory=dict)
    local_counts: bool = False
    host_counts: bool = False
    keeps_order: bool = False
    whole: bool = False
    alone: str = ""
    joint: bool = False
    shares_links: bool = False
    stand_in: Literal["", "any", "short", "long"] = ""
    power_of_two: bool = False
    as_levels: bool = False
    trial: bool = True
    default: float = inf
    logarithmic: bool = False
    costly: bool = False

    @property
    def divides(self) -> bool:
        """Whether it divides a message into as many parts as one asks for."""
        return self.cut in ("blocks", "segments")

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the generator's keyword parameters, ``root`` and ``blocks`` left out."""
        known = inspect.signature(self.generator).parameters.values()
        return tuple(one.name for one in known if one.kind is one.KEYWORD_ONLY and one.name not in ("root", "blocks"))

    @cached_property
    def _accepted(self) -> frozenset[str]:
        """Names of all parameters that the generator takes by name."""
        known = inspect.signature(self.generator).parameters.values()
        return frozenset(one.name for one in known if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD))

    def generate(
        self,
        network: Network,
        root: int = 0,
        blocks: int | None = None,
        counts: ArrayLike | None = None,
        *,
        ordered: bool = False,
        **parameters: Any,
    ) -> Schedule | HostSchedule:
        """The schedule on a network; an alltoall over hosts stays in its compact form.

        :param network: the job's network.
        :param root: of a rooted collective, else 0.
        :param blocks: blocks of one message; None for as many as the algorithm divides it into by itself.
        :param counts: for the v-forms, blocks of each rank, shape (p,), or of each pair, shape (p, p); None if all are
            equal.
        :param ordered: ask for rank order, where the generator can be asked.
        :param parameters: the generator's own, by name.
        :raises ValueError: for a root, blocks or counts that the generator does not take, or what it refuses.
        """
        if blocks is not None and blocks < 1:
            raise ValueError(f"expecting at least 1 block, got {blocks}")
        arguments, keywords = self.view(network, root)
        keywords = {**keywords, **self.fixed, **parameters}
        if "root" in self._accepted:
            keywords["root"] = root
        for name, value in (("root", root or None), ("blocks", blocks), ("counts", counts)):
            if value is not None and name not in self._accepted:
                raise ValueError(f"expecting no {name}, which this algorithm does not take, got {value}")
            if value is not None:
                keywords[name] = value
        if ordered and "ordered" in self._accepted:
            keywords["ordered"] = True
        return self.generator(*arguments, **keywords)
