"""Rules that tell which algorithms can run a call, and which of them need a collective preparation first.

The rules use only facts that all ranks know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schedules.registry import ALGORITHMS
from ...schedules.segments import can_be_cut, cut
from .specs import CALLS, NATIVE, NO_NEEDS, Form, Needs, Varying

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["can_run", "is_carried", "is_ready", "why_not"]

# Calls in which each rank knows only its own counts, and which carriers (ranks that send between hosts for the other
# ranks of their host) can run, because each rank sends them its counts.
CARRIED = frozenset(
    name for name, spec in CALLS.items() if spec.form is Form.ALLTOALL and spec.counts is Varying.COUNTED
)


def can_run(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> bool:
    """Whether an algorithm can run a call, decided from facts that all ranks know, without the network.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, or a name of ``schedules.ALGORITHMS``, with or without a segment size
        (``ring/32K``).
    :param needs: needs of a reduction's operation: operands in rank order, whole vectors, or both; by default none.
    """
    return not why_not(method, algorithm, needs)


def is_carried(method: str, algorithm: str) -> bool:
    """Whether an algorithm runs a call by carriers (ranks that send between hosts for their host), and not by a plan.

    It does so if each rank knows only its own counts, so that no rank can make a plan.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, or the name of a schedule, with or without a segment size.
    """
    if method not in CARRIED:  # tested first, because this function is called in every call
        return False
    entry = ALGORITHMS.get(CALLS[method].collective, {}).get(algorithm)
    return entry is not None and entry.host_counts


def is_ready(executor: Executor, method: str, algorithm: str) -> bool:
    """Whether an algorithm can run a call without a collective preparation first; the same on all ranks.

    The preparation of a plan is that rank 0 sends the schedule, if this is costly to generate, or the order of hosts
    along rings and chains, if the algorithm follows routes. The preparation of a call by carriers is the making of the
    communicator for messages of plans.

    :param executor: the communicator's executor.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: name of an algorithm that ``can_run`` allows, not ``native``.
    """
    spec = CALLS[method]
    if is_carried(method, algorithm):
        return executor.groups.connected
    name = cut(algorithm)[0]
    entry = ALGORITHMS[spec.collective].get(name)
    if entry is not None and entry.routed:
        return executor.has_order
    return entry is None or not entry.costly or (spec.collective, name) in executor.shared


def why_not(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> str:
    """The reason why an algorithm cannot run a call, in words; empty if it can.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, or a name of ``schedules.ALGORITHMS``, with or without a segment size
        (``ring/32K``).
    :param needs: needs of a reduction's operation: operands in rank order, whole vectors, or both; by default none.
    """
    if algorithm == NATIVE:
        return ""
    spec, (name, slash, _) = CALLS[method], algorithm.partition("/")
    ordered = "the operation does not commute" if spec.reduces and needs.order else ""
    entry = ALGORITHMS.get(spec.collective, {}).get(name)
    if entry is None:
        return f"{spec.collective} has no algorithm of this name"
    if ordered and not entry.keeps_order:
        return ordered
    if spec.reduces and needs.whole and (slash or not entry.whole):
        return "the operation is the user's own, and this schedule applies it to pieces of a vector"
    if spec.local and (slash or not (entry.local_counts or is_carried(method, name))):
        return f"a rank of {method} knows only its own blocks, and this schedule needs to know all"
    return "" if not slash or can_be_cut(spec.collective, algorithm) else "its messages cannot be cut"
