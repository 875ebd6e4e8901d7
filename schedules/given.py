"""Algorithms from outside the registry: a user's function (``module:function``), or the file of one schedule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..inputs import read_text
from ..inputs.extensions import imported
from .algorithm import Algorithm
from .alltoall.hostschedule import HostSchedule
from .exports.jsonio import ScheduleTextError, from_json
from .network import Network
from .proof import ScheduleError, check
from .schedule import COLLECTIVES, ROOTED, Schedule

__all__ = ["given"]

_Made = Schedule | HostSchedule
_MOST = 1 << 26  # most steps, and most blocks moved, of a user's schedule, because a proof takes about 100 bytes each


def given(collective: str, name: str) -> Algorithm:
    """Load an algorithm from a user's function or file. Every schedule that it makes is proved before it is returned.

    :param collective: collective that the schedules must implement.
    :param name: ``module:function``, or the path of a file written by ``to_json``, which is read when the schedule is
        made. The function takes a ``Network`` and, by name, whichever of ``root``, ``blocks`` and ``counts`` its
        signature has, and returns a ``Schedule``. The current directory is searched first, as by ``python -m``.
    :raises ValueError: if the module or function does not exist.
    """
    if name.endswith(".json"):
        return Algorithm(_File(collective, name))
    return Algorithm(_Function(collective, name, imported(name)))


@dataclass(frozen=True)
class _File:
    """A generator that reads a schedule from its file."""

    collective: str
    path: str

    def __call__(self, network: Network, *, root: int = 0, blocks: int | None = None) -> Schedule:
        try:
            made = from_json(read_text(self.path, ScheduleError, "a schedule"), self.path)
        except ScheduleTextError as error:
            raise ScheduleError(str(error)) from error
        _prove(self.path, made, self.collective, network.num_ranks, {"root": root, "blocks": blocks})
        return made


@dataclass(frozen=True)
class _Function:
    """A generator that calls a user's function."""

    collective: str
    name: str
    function: Callable[..., object]

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The function's signature, with all parameters after the network as keyword parameters."""
        try:
            first, *others = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            raise ValueError(f"{self.name}: expecting a function that takes a network, got another") from None
        named = [one.replace(kind=one.KEYWORD_ONLY) for one in others if one.kind is one.POSITIONAL_OR_KEYWORD]
        named += [one for one in others if one.kind is one.KEYWORD_ONLY]
        return inspect.Signature([first.replace(kind=first.POSITIONAL_ONLY), *named])

    def __call__(self, network: Network, **keywords: object) -> _Made:
        try:
            made = self.function(network, **keywords)
        except ValueError as error:  # the user's function refuses a value, as built-in generators do
            raise ValueError(f"{self.name}: {error}") from error
        except Exception as error:
            raise ScheduleError(f"{self.name}: {type(error).__name__}: {error}") from error
        if not isinstance(made, Schedule | HostSchedule):
            raise ScheduleError(f"{self.name}: expecting a Schedule, got {type(made).__name__}")
        whole = made.expand() if isinstance(made, HostSchedule) else made
        _prove(self.name, whole, self.collective, network.num_ranks, keywords)
        return made


def _prove(name: str, schedule: Schedule, collective: str, ranks: int, asked: Mapping[str, object]) -> None:
    """Raise ScheduleError if a schedule differs from the request or does not implement its collective.

    :param name: the first words of error messages.
    :param schedule: schedule to prove.
    :param collective: collective that the schedule must implement.
    :param ranks: number of ranks that the schedule must have.
    :param asked: requested ``root``, ``blocks`` and ``counts``; each may be absent.
    """
    does = collective if collective in COLLECTIVES else "alltoall"  # the collective "fft" consists of alltoalls
    wanted: dict[str, object] = {
        "collective": does,
        "size": ranks,
        "root": asked.get("root", 0) if does in ROOTED else None,
    }
    wanted |= {} if asked.get("blocks") is None else {"blocks": asked["blocks"]}
    for field, value in wanted.items():
        if getattr(schedule, field) != value:
            raise ScheduleError(f"{name}: {field}: expecting {value}, got {getattr(schedule, field)}")
    moved, shares = np.abs(schedule.count.astype(np.int64)).sum(), schedule.share().sum()
    for what, number in (("steps", schedule.num_steps), ("blocks moved", moved), ("blocks of all shares", shares)):
        if number > _MOST:
            raise ScheduleError(f"{name}: expecting at most {_MOST:,} {what}, got {number:,}")
    counts = schedule.blocks if asked.get("counts") is None else np.asarray(asked["counts"])
    if does == collective and (schedule.share() != counts).any():
        raise ScheduleError(f"{name}: counts: expecting those asked for, by default the same for all, got others")
    try:
        check(schedule)
    except ScheduleError as error:
        raise ScheduleError(f"{name}: {error}", error.step, error.ranks) from error
