"""Calls that run in stages without a plan: over leaders, or by carriers.

A leader is the one rank per host, leaf switch and so on that speaks for it. Carriers are ranks that send between hosts
for the other ranks of their host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .contexts import Channel
from .executor import Executor
from .leaders import LEADERS, alltoallv, take_part_by_carriers, take_part_over_leaders
from .leaders.parcels import Route
from .specs import CALLS, LEVELS, CallSpec

__all__ = ["stages_of", "take_part"]


def stages_of(executor: Executor, method: str, algorithm: str) -> Callable[..., None]:
    """The function that runs a call in stages, given the call's arguments.

    Collective at the first call that needs sub-communicators of leaders, or the communicator for carriers' messages.

    :param executor: the communicator's executor.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: name of an algorithm that runs the call in stages: ``levels`` (over leaders), or one by carriers.
    :raises ValueError: if the algorithm is ``levels``, and the call cannot run over leaders.
    """
    if algorithm != LEVELS:
        return partial(alltoallv, *_carriers(executor, method), executor.groups.alone)
    if method not in LEADERS:
        raise ValueError(f"expecting a call of {', '.join(LEADERS)}, got {method!r}")
    return partial(LEADERS[method], executor.groups.levels(CALLS[method].kind))


def take_part(executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...]) -> bool:
    """Forward the other ranks' blocks in a call whose arguments are wrong on this rank, because the others wait for it.

    This is possible in calls in which the sizes of blocks are sent ahead of them. The result is False, and nothing is
    done, if the root is out of range.

    :param executor: the communicator's executor.
    :param spec: the description of the call.
    :param algorithm: name of an algorithm that runs the call in stages.
    :param arguments: all arguments of mpi4py's method, in their order.
    """
    if algorithm != LEVELS:
        take_part_by_carriers(*_carriers(executor, spec.name))
        return True
    if 0 <= arguments[-1] < executor.groups.size:
        take_part_over_leaders(executor.groups.levels(spec.kind), spec.form, arguments[-1])
        return True
    return False


def _carriers(executor: Executor, method: str) -> tuple[Route, Channel]:
    """The route, which has the parcels (packed blocks) that this rank sends and receives, and their channel."""
    groups = executor.groups
    route: Route = executor.plans.made(("route",), lambda: Route(executor.network.rank_host, groups.rank))
    return route, groups.channel(CALLS[method].number)
