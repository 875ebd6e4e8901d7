"""Calls that run in stages without a plan: over the leaders of levels, or by carriers inside hosts."""

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
    """The function of a call's arguments that runs the call; collective at the first call of its kind.

    :param executor: the communicator's executor.
    :param method: the call, a key of ``specs.CALLS``.
    :param algorithm: name of an algorithm that runs the call in stages.
    :raises ValueError: for ``levels`` and a call that has no form over leaders.
    """
    if algorithm != LEVELS:
        return partial(alltoallv, *_carriers(executor, method), executor.groups.alone)
    if method not in LEADERS:
        raise ValueError(f"expecting a call of {', '.join(LEADERS)}, got {method!r}")
    return partial(LEADERS[method], executor.groups.levels(CALLS[method].kind))


def take_part(executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...]) -> bool:
    """Take this rank's part in a call that it refuses, if sizes go ahead of blocks. True if the rank could.

    :param executor: the communicator's executor.
    :param spec: description of the call.
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
    """The route of this rank's parcels, and the channel that carries them."""
    groups = executor.groups
    route: Route = executor.plans.made(("route",), lambda: Route(executor.network.rank_host, groups.rank))
    return route, groups.channel(CALLS[method].number)
