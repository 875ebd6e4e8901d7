"""Rules that tell which algorithms can run a call, and which of them need a collective preparation first.

The rules use only facts that all ranks know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..schedules.registry import ALGORITHMS
from ..schedules.segments import can_be_cut, cut
from .specs import CALLS, LEVELS, NATIVE, NO_NEEDS, Counts, Form, Needs

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["can_run", "form_of", "is_in_stages", "is_ready", "why_not"]

# Calls in which each rank knows only its own counts, and which carriers (ranks that send between hosts for the other
# ranks of their host) can run, because each rank sends them its counts.
CARRIED = frozenset(
    name for name, spec in CALLS.items() if spec.form is Form.ALLTOALL and spec.counts is Counts.COUNTED
)


def can_run(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> bool:
    """Whether an algorithm can run a call, decided from facts that all ranks know, without the network.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, with or without a segment size
        (``ring/32K``).
    :param needs: needs of a reduction's operation: operands in rank order, whole vectors, or both; by default none.
    """
    return not why_not(method, algorithm, needs)


def form_of(method: str, algorithm: str) -> str:
    """The algorithm that runs a call if the given one is chosen: the given one itself, or ``levels`` in its place.

    A schedule over levels (host, leaf switch and so on) needs the counts of all ranks. If each rank of the call knows
    only its own counts, ``levels`` takes the schedule's place, because its collectives among leaders (one rank per host
    or leaf switch) send the counts ahead of the blocks.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, with or without a segment size.
    """
    spec = CALLS[method]
    entry = ALGORITHMS.get(spec.collective, {}).get(algorithm)
    of_levels = entry is not None and entry.as_levels and not entry.local_counts
    return "levels" if of_levels and spec.local and spec.leaders else algorithm


def _is_carried(method: str, algorithm: str) -> bool:
    """Whether an algorithm runs a call by carriers (ranks that send between hosts for their host), and not by a plan.

    It does so if each rank knows only its own counts, so that no rank can make a plan.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or the name of a schedule, with or without a segment size.
    """
    if method not in CARRIED:  # tested first, because this function is called in every call
        return False
    entry = ALGORITHMS.get(CALLS[method].collective, {}).get(algorithm)
    return entry is not None and entry.host_counts


def is_in_stages(method: str, algorithm: str) -> bool:
    """Whether an algorithm runs a call in stages without a plan.

    The stages are those of leaders (one rank per host, leaf switch and so on) or of carriers (ranks that send between
    hosts for the other ranks of their host).

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or the name of a schedule, with or without a segment size.
    """
    return algorithm == LEVELS or _is_carried(method, algorithm)


def is_ready(executor: Executor, method: str, algorithm: str) -> bool:
    """Whether an algorithm can run a call without a collective preparation first; the same on all ranks.

    The preparation of a plan is that rank 0 sends the schedule, if this is costly to generate, or the order of hosts
    along rings and chains, if the algorithm follows routes. The preparation of a call in stages is the making of the
    sub-communicators of leaders, or of the communicator for messages of plans.

    :param executor: the communicator's executor.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: name of an algorithm that ``can_run`` allows, not ``native``.
    """
    spec, groups = CALLS[method], executor.groups
    if is_in_stages(method, algorithm):
        return groups.has_levels(spec.kind) if algorithm == LEVELS else groups.connected
    name = cut(algorithm)[0]
    entry = ALGORITHMS[spec.collective].get(name)
    if entry is not None and entry.routed:
        return executor.has_order
    return entry is None or not entry.costly or (spec.collective, name) in executor.shared


def why_not(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> str:
    """The reason why an algorithm cannot run a call, in words; empty if it can.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, with or without a segment size
        (``ring/32K``).
    :param needs: needs of a reduction's operation: operands in rank order, whole vectors, or both; by default none.
    """
    if algorithm == NATIVE:
        return ""
    spec, (name, slash, _) = CALLS[method], algorithm.partition("/")
    ordered = "the operation does not commute" if spec.reduces and needs.order else ""
    if algorithm == LEVELS:
        return ordered if spec.leaders else f"{method} has no form over leaders"
    entry = ALGORITHMS.get(spec.collective, {}).get(name)
    if entry is None:
        return f"{spec.collective} has no algorithm of this name"
    if ordered and not entry.keeps_order:
        return ordered
    if spec.reduces and needs.whole and (slash or not entry.whole):
        return "the operation is the user's own, and this schedule applies it to pieces of a vector"
    if spec.local and (slash or not (entry.local_counts or _is_carried(method, name))):
        return f"a rank of {method} knows only its own blocks, and this schedule needs to know all"
    return "" if not slash or can_be_cut(spec.collective, algorithm) else "its messages cannot be cut"
