"""The description of an algorithm: the generator of its schedules, its properties, and where it is fast."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, Literal

from numpy.typing import ArrayLike

from .alltoall.hostschedule import HostSchedule
from .network import DEPTH_FIRST, Network
from .schedule import Schedule

__all__ = ["FORMER_NAMES", "Algorithm", "View", "current_name", "takes_network"]

View = Callable[[Network, int], tuple[tuple[Any, ...], dict[str, object]]]

# Former names of algorithms and the present ones, because files of earlier versions are still read. No new algorithm
# may take a former name.
FORMER_NAMES = {
    "aside_circulant": "aside",
    "aside_ring": "aside",
    "bine": "swing",
    "bound": "colouring",
    "bucket_ports": "bucket",
    "interleaved": "shift",
    "lanes_scatter_allgather": "lanes_circulant",
    "levels": "leaders",
    "pat": "grouped",
    "wave": "reordered",
}


def current_name(algorithm: str) -> str:
    """The present name of an algorithm that may have been renamed; a size of cut messages (``/32K``) is kept.

    :param algorithm: present or former name, with or without a size.
    """
    name, slash, size = algorithm.partition("/")
    return FORMER_NAMES.get(name, name) + slash + size


def takes_network(network: Network, root: int) -> tuple[tuple[Network], dict[str, object]]:
    """The positional and keyword arguments of a generator that needs only the network; the root is not among them.

    :param network: the job's network.
    :param root: ignored; every `Algorithm.view` has this parameter.
    """
    return (network,), {}


@dataclass(frozen=True)
class Algorithm:
    """A generator of schedules, its arguments on a network, and the properties by which callers choose algorithms.

    :param generator: function that makes the schedule; its docstring cites the paper and gives the cost.
    :param view: function that takes a network and a root, and returns the generator's positional and keyword arguments;
        by default the only argument is the network.
    :param when: message lengths and networks for which the algorithm is fast, in one line of words.
    :param fixed: keyword arguments of the generator that distinguish this algorithm from others of the same generator.
    :param cut: the way in which messages can be cut. ``blocks``: the generator divides a message into a given number of
        blocks and sends them one by one. ``segments``: the generator divides a message into a given number of segments,
        each of several blocks, and sends one segment after the other. ``slices``: every transfer carries one rank's
        share, and each part of a share can travel separately. None: messages cannot be cut.
    :param segments: sizes of parts in bytes, each with the numbers of parts for which cutting messages into parts of
        this size was faster.
    :param parts: function of the network and the bytes of a message that returns the number of blocks into which the
        message is divided if the algorithm's name has no size; None if the generator has one number for all messages.
    :param local_counts: whether a rank needs only its own counts, because each message carries the whole block of one
        pair of ranks from the input directly to the output.
    :param host_counts: whether an alltoallv can run if each rank knows only its own counts, because the ranks of a host
        exchange their counts, and messages to other hosts contain the sizes of their blocks.
    :param keeps_order: whether a reduction combines its operands in rank order, if the root is rank 0 and ranks are
        placed in the order of the network. For another root or placement ``schedules.check`` can prove it.
    :param whole: whether a reduction always applies its operation to whole vectors, never to parts of them.
    :param alone: name of the algorithm that this one equals if each host has one rank; empty for algorithms that are
        not made for several ranks per host. For an algorithm in lanes it is the algorithm that runs across hosts.
    :param joint: whether the schedule takes account of the groups in ``Network.siblings``, which exchange at the same
        time.
    :param shares_links: whether each step puts an equal part of the busiest link's total load on it (more than one
        message), and no more than that part, rounded up, on any link. Links are then full even if ranks are in
        different steps.
    :param stand_in: message lengths for which MPI libraries that do not know the topology run this algorithm: ``any``,
        ``short`` or ``long``; empty if they do not run it.
    :param power_of_two: whether it takes more steps than necessary if the number of ranks is no power of two.
    :param trial: whether it takes part in trials, the timed first calls of a communicator that determine the fastest
        algorithm.
    :param default: least bytes of a call for which it may be chosen by prediction alone, without measurements. Calls of
        this size or more were not slower with it than with the MPI library's algorithm on emulated networks with 16
        ranks (docs/lab/untuned.md). Among algorithms with equal predictions the one with the largest value is chosen.
        Infinite if it may never be chosen without measurements.
    :param logarithmic: whether its number of steps grows with the logarithm of the number of ranks. The other
        algorithms that divide a message among ranks need longer calls than ``default`` on more ranks, because the parts
        get shorter.
    :param costly: whether generating the schedule takes far longer than making one rank's rows of it. Then one rank
        generates it for all, so the schedule can be pickled and depends on the network only, not on root, blocks or
        counts.
    :param needs: property of the networks for which it is made, elsewhere it takes no part in choices: ``slow hosts``
        that stand aside, see `slowhosts.standing_aside`, hosts with several ``ports``, see `network.Network.ports`, or
        these or a ``torus`` that the job fills; empty for any network.
    :param divides_shares: whether each rank's share is divided among several exchanges if hosts have several ports, so
        that plans count in the bytes or entries of shares, not in whole shares.
    :param routed: whether ranks are in the order of ``Network.order``, which follows routes and rates. One rank
        searches this order for all.
    """

    generator: Callable[..., Schedule | HostSchedule]
    view: View = takes_network
    when: str = ""
    fixed: Mapping[str, object] = field(default_factory=dict)
    cut: Literal["blocks", "segments", "slices"] | None = None
    segments: Mapping[int, range] = field(default_factory=dict)
    parts: Callable[[Network, int], int] | None = None
    local_counts: bool = False
    host_counts: bool = False
    keeps_order: bool = False
    whole: bool = False
    alone: str = ""
    joint: bool = False
    shares_links: bool = False
    stand_in: Literal["", "any", "short", "long"] = ""
    power_of_two: bool = False
    trial: bool = True
    default: float = inf
    logarithmic: bool = False
    costly: bool = False
    routed: bool = False
    divides_shares: bool = False
    needs: Literal["", "slow hosts", "torus", "ports"] = ""

    @property
    def divides(self) -> bool:
        """Whether the algorithm divides a message into any given number of parts."""
        return self.cut in ("blocks", "segments")

    def blocks_of(self, network: Network, nbytes: int) -> int | None:
        """The number of blocks of a message if the algorithm's name has no size; None for the generator's own number.

        :param network: the job's network.
        :param nbytes: bytes of the message.
        """
        return None if self.parts is None else self.parts(network, nbytes)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of the generator's keyword parameters, without ``root`` and ``blocks``."""
        known = inspect.signature(self.generator).parameters.values()
        return tuple(one.name for one in known if one.kind is one.KEYWORD_ONLY and one.name not in ("root", "blocks"))

    @cached_property
    def _accepted(self) -> frozenset[str]:
        """The names of all parameters that can be passed to the generator by keyword."""
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
        **parameters: object,
    ) -> Schedule | HostSchedule:
        """Generate the schedule on a network, for some alltoalls in the compact form of a `HostSchedule`.

        :param network: the job's network.
        :param root: the root's rank; 0 for collectives without a root.
        :param blocks: number of blocks of one message; None for the algorithm's default number.
        :param counts: blocks of each of p ranks, shape (p,), or of each pair of ranks, shape (p, p), for the v-forms;
            None if all are equal.
        :param ordered: whether to ask for a reduction in rank order; ignored by generators without this option. Rings
            and chains are then in depth-first order, in which ``keeps_order`` holds.
        :param parameters: further keyword arguments of the generator.
        :raises ValueError: if the generator takes no root, blocks or counts but one is given, or if it refuses a value.
        """
        if blocks is not None and blocks < 1:
            raise ValueError(f"expecting at least 1 block, got {blocks}")
        if self.routed:
            network = replace(network, order=DEPTH_FIRST) if ordered else _with_order(network)
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


def _with_order(network: Network) -> Network:
    """The network with the order of ``orders.with_order``, which is imported only if a search may be necessary."""
    if network.order is not None:
        return network
    from .orders import with_order  # imported late because most ranks get the order from another one

    return with_order(network)
