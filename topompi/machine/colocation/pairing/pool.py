"""The pairing of a pool of jobs, with the reason of each pair and the expected speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from ..profiles.record import Profile
from ..profiles.system import AXES, System, Tag
from ..rules.labels import Labels, character_of, labels
from ..speedups.bands import CLASSES
from ..speedups.matrix import Speedups
from .matching import MATCHERS, optimal
from .values import label_values, require_known, saved, scores, weights_of

__all__ = ["BASES", "Knowledge", "Pair", "Pairing", "pair_jobs"]

Reals = NDArray[np.float64]
BASES = ("speedups", "labels", "score")
_NAN2 = (math.nan, math.nan)


class Pair(NamedTuple):
    """Two jobs on the same nodes.

    :ivar jobs: numbers of the jobs in the pool.
    :ivar programs: their programs.
    :ivar speedups: expected speed-up of each against nodes of its own; NaN if it is not known.
    :ivar reason: reason for the pair, in words.
    """

    jobs: tuple[int, int]
    programs: tuple[str, str]
    speedups: tuple[float, float]
    reason: str


@dataclass(frozen=True)
class Pairing:
    """The pairs of a pool.

    :ivar pairs: the pairs, the most valuable first.
    :ivar alone: number, program and reason of each job that gets nodes of its own.
    :ivar gain: node seconds of all jobs on nodes of their own, over node seconds in these pairs; NaN if it is unknown.
    """

    pairs: tuple[Pair, ...]
    alone: tuple[tuple[int, str, str], ...]
    gain: float


@dataclass(frozen=True)
class Knowledge:
    """The facts about programs that a pairing may use.

    :ivar profiles: profile of each program, by name.
    :ivar system: bounds and thresholds for the profiles; None if there are none.
    :ivar speedups: speed-ups of programs beside each other; None if they are unknown.
    """

    profiles: Mapping[str, Profile]
    system: System | None = None
    speedups: Speedups | None = None

    def profile(self, program: str) -> Profile:
        """Return the profile of a program.

        :param program: name of the program.
        :raises ColocationError: if there is none.
        """
        if program not in self.profiles:
            known = ", ".join(self.profiles) or "no program"
            raise ColocationError(f"{program}: expecting a program with a profile ({known}), got none")
        return self.profiles[program]

    def tags(self, programs: Sequence[str]) -> list[Tag]:
        """Return the normalised profiles of some programs.

        :param programs: names of the programs.
        """
        found = [self.profile(name) for name in programs]
        if self.system is None:
            raise ColocationError("expecting the bounds of a system for profiles, got none")
        return [self.system.tag(one) for one in found]

    def characters(self, programs: Sequence[str]) -> list[Labels]:
        """Return the characters of some programs.

        :param programs: names of the programs.
        """
        found = [self.profile(name) for name in programs]
        if any(not one.kind for one in found) and self.system is None:
            raise ColocationError("expecting the bounds of a system for profiles, got none")
        system = self.system or System("kinds", 1, 1, 1, 1)
        return [character_of(one, system) for one in found]


def pair_jobs(
    jobs: Sequence[str],
    known: Knowledge,
    *,
    by: str,
    method: str = "optimal",
    all_paired: bool = False,
    skip_unknown: bool = False,
    least: float = 0.0,
) -> Pairing:
    """Pair the jobs of a pool, so that the pairs have the largest sum of values.

    By speed-ups, the value of a pair is the machine time that it saves. By labels, it is the number of its good labels
    minus that of its bad ones. By score, it is the distance of the two profiles, and all jobs are paired.

    :param jobs: program of each job of the pool; a program may be there several times.
    :param known: facts about the programs.
    :param by: one of ``BASES``.
    :param method: one of ``MATCHERS``.
    :param all_paired: whether jobs are paired that gain nothing, too.
    :param skip_unknown: whether pairs with an unknown speed-up are left out instead of refused.
    :param least: least speed-up of each program; pairs in which one is slower are not made.
    :raises ColocationError: if facts are missing or contradictory.
    """
    if by not in BASES or method not in MATCHERS:
        known_words = ", ".join(BASES if by not in BASES else MATCHERS)
        raise ColocationError(f"expecting one of {known_words}, got {by if by not in BASES else method!r}")
    programs = list(dict.fromkeys(jobs))
    at = np.array([programs.index(name) for name in jobs], np.int64)
    basis = _BASES[by](jobs, programs, known, skip_unknown)
    value = basis.value[np.ix_(at, at)]
    every = all_paired or by == "score" or method == "sequential"
    allowed = np.where(_slow(known, programs, least)[np.ix_(at, at)], np.nan, value)
    if not every:
        allowed = np.where(allowed > 0, allowed, np.nan)
    chosen = optimal(allowed, all_paired=every) if method == "optimal" else MATCHERS[method](allowed)
    chosen.sort(key=lambda pair: (-value[pair], pair))
    numbers = [(int(at[one]), int(at[other])) for one, other in chosen]
    pairs = tuple(
        Pair(pair, (jobs[pair[0]], jobs[pair[1]]), _speedups(known, jobs[pair[0]], jobs[pair[1]]), basis.reason(*kind))
        for pair, kind in zip(chosen, numbers, strict=True)
    )
    taken = {one for pair in chosen for one in pair}
    rest = tuple((one, name, _why_alone(value, allowed, one)) for one, name in enumerate(jobs) if one not in taken)
    return Pairing(pairs, rest, _gain(known, jobs, chosen))


class _Basis:
    """Values of pairs of programs, and their reasons.

    :ivar value: value of each pair of programs, shape (n, n); NaN if unknown.
    """

    value: Reals

    def reason(self, one: int, other: int) -> str:
        """Return the reason for a pair, in words.

        :param one: number of the first program.
        :param other: number of the second program.
        """
        raise NotImplementedError


class _BySpeedups(_Basis):
    def __init__(self, jobs: Sequence[str], programs: list[str], known: Knowledge, skip_unknown: bool) -> None:
        if known.speedups is None:
            raise ColocationError("expecting a file of speed-ups to pair by speed-ups, got none")
        if not skip_unknown:
            require_known(known.speedups, list(jobs))
        matrix = known.speedups.only(programs)
        self.weights = weights_of(matrix)
        self.value = saved(matrix, self.weights)

    def reason(self, one: int, other: int) -> str:
        share = self.value[one, other] / (self.weights[one] + self.weights[other])
        return f"{abs(share):.1%} {'less' if share >= 0 else 'more'} machine time than on nodes of their own"


class _ByLabels(_Basis):
    def __init__(self, jobs: Sequence[str], programs: list[str], known: Knowledge, skip_unknown: bool) -> None:
        self.characters = known.characters(programs)
        self.labels = labels(self.characters)
        self.value = label_values(self.labels)

    def reason(self, one: int, other: int) -> str:
        first, second = (self.characters[at].kind.words for at in (one, other))
        words = CLASSES[self.labels[one, other]], CLASSES[self.labels[other, one]]
        return f"{first}: {words[0]}; {second}: {words[1]}"


class _ByScore(_Basis):
    def __init__(self, jobs: Sequence[str], programs: list[str], known: Knowledge, skip_unknown: bool) -> None:
        self.tags = known.tags(programs)
        self.value = scores(self.tags)

    def reason(self, one: int, other: int) -> str:
        axes = np.array([self.tags[at].axes[:3] for at in (one, other)])
        most = int(np.argmax(np.abs(axes[0] - axes[1])))
        return (
            f"profiles differ by {self.value[one, other]:.2f}, most in {AXES[most]} "
            f"({axes[0, most]:.2f} and {axes[1, most]:.2f})"
        )


_BASES = {"speedups": _BySpeedups, "labels": _ByLabels, "score": _ByScore}


def _speedups(known: Knowledge, one: str, other: str) -> tuple[float, float]:
    matrix = known.speedups
    if matrix is None or not {one, other} <= matrix.number.keys():
        return _NAN2
    at, beside = matrix.number[one], matrix.number[other]
    return float(matrix.ratio[at, beside]), float(matrix.ratio[beside, at])


def _slow(known: Knowledge, programs: Sequence[str], least: float) -> NDArray[np.bool_]:
    """Return the pairs of programs of which one is slower than allowed, shape (n, n)."""
    if not least:
        return np.zeros((len(programs), len(programs)), bool)
    if known.speedups is None:
        raise ColocationError("expecting a file of speed-ups for a least speed-up, got none")
    slow = known.speedups.only(programs).ratio < least
    return slow | slow.T


def _why_alone(value: Reals, allowed: Reals, job: int) -> str:
    if not np.isfinite(np.delete(value[job], job)).any():
        return "no other job whose speed-ups beside it are known" if len(value) > 1 else "no other job"
    if not np.isfinite(np.delete(allowed[job], job)).any():
        return "no job gains with it"
    return "the number of jobs is odd" if len(value) % 2 else "its partners gain more with others"


def _gain(known: Knowledge, jobs: Sequence[str], pairs: Sequence[tuple[int, int]]) -> float:
    """Return node seconds of all jobs on nodes of their own over those in the pairs; NaN if a cell is unknown."""
    if known.speedups is None or not set(jobs) <= known.speedups.number.keys():
        return math.nan
    matrix = known.speedups.only(list(dict.fromkeys(jobs)))
    weights = weights_of(matrix)
    at = [matrix.number[name] for name in jobs]
    alone = float(weights[at].sum())
    less = saved(matrix, weights)
    return alone / (alone - float(sum(less[at[one], at[other]] for one, other in pairs))) if jobs else math.nan
