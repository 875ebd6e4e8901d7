"""Prices of jobs that share nodes, in service units: as usual, by any factor of a site, POPPA's, and the oracle's.

The price as usual is ``rate x cores x T_co``, all others are ``F(T_solo, T_co) x cores x T_solo``, with the fair factor
``F = rate x T_solo / T_co``. An estimate p of ``T_solo / T_co`` gives ``T_solo = p x T_co``, hence a fair price
of ``rate x cores x p^2 x T_co``: the discount needs p twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ....inputs.extensions import imported, names_function
from ..errors import ColocationError
from ..estimates.estimators import NOTHING, Estimate

__all__ = ["RULES", "Price", "Run", "charged_cores", "find_factor", "price"]

Factor = Callable[[float, float], float]  # (T_solo, T_co) in seconds -> service units per core and second
RULES = ("poppa", "as-usual", "oracle")
_DEGRADATIONS = tuple(step / 16 for step in range(16))  # at which a factor is checked


@dataclass(frozen=True)
class Run:
    """A completed run of a job.

    :param job: name of the job.
    :param seconds: run time beside others by the clock.
    :param cores: number of cores that are charged.
    :param project: project that pays; empty if unknown.
    :param user: user who ran it; empty if unknown.
    :param solo_seconds: run time alone, if it is known; None otherwise.
    :param stopped: share of the run time in which the shutter stopped the job, 0 to below 1; it is not charged.
    """

    job: str
    seconds: float
    cores: int
    project: str = ""
    user: str = ""
    solo_seconds: float | None = None
    stopped: float = 0.0

    def __post_init__(self) -> None:
        for name, value, good in (
            ("seconds", self.seconds, math.isfinite(self.seconds) and self.seconds >= 0),
            ("cores", self.cores, self.cores >= 1),
            ("stopped", self.stopped, 0 <= self.stopped < 1),
            ("solo_seconds", self.solo_seconds, self.solo_seconds is None or 0 < self.solo_seconds < math.inf),
        ):
            if not good:
                raise ColocationError(f"job {self.job}: {name}: expecting a quantity in its range, got {value!r}")

    @property
    def charged_seconds(self) -> float:
        """Run time without the time that the shutter stopped the job."""
        return self.seconds * (1 - self.stopped)


@dataclass(frozen=True)
class Price:
    """The price of a run.

    :param rule: name of the rule, or ``module:function`` of a site's factor.
    :param amount: service units.
    :param low: price at one end of the interval of the estimate.
    :param high: price at the other end, at least ``low``.
    :param performance: ``T_solo / T_co`` that the price rests on, clamped to (0, 1].
    :param raw: the estimate before it was clamped.
    :param undisturbed: price of the same work alone, from the same estimate of ``T_solo``.
    """

    rule: str
    amount: float
    low: float
    high: float
    performance: float
    raw: float
    undisturbed: float

    @property
    def discount(self) -> float:
        """Share of the price alone that the user does not pay; negative for a surcharge."""
        return 1 - self.amount / self.undisturbed if self.undisturbed else 0.0


def charged_cores(cores: int, cores_per_node: int) -> int:
    """Round a number of cores up to whole nodes."""
    return -(-cores // cores_per_node) * cores_per_node


def find_factor(name: str) -> Factor:
    """Return the factor that ``module:function`` names: (T_solo, T_co) in seconds -> service units per core and second.

    :raises ColocationError: if it cannot be imported, or rises with the degradation.
    """
    if not names_function(name):
        raise ColocationError(f"rule: expecting one of {', '.join(RULES)}, or a module:function, got {name!r}")
    try:
        factor = imported(name)
    except ValueError as problem:
        raise ColocationError(str(problem)) from problem
    values = [_value(name, factor, 3600.0, 3600.0 / (1 - one)) for one in _DEGRADATIONS]
    for one, before, after in zip(_DEGRADATIONS[1:], values, values[1:], strict=False):
        if after > before * (1 + 1e-12):
            raise ColocationError(f"{name}: expecting a factor that falls with the degradation, got a rise at {one:g}")
    return factor


def _value(name: str, factor: Factor, solo: float, shared: float) -> float:
    try:
        found = float(factor(solo, shared))
    except Exception as problem:  # a site's function may raise anything
        raise ColocationError(f"{name}: {type(problem).__name__}: {problem}") from problem
    if not 0 <= found < math.inf:
        raise ColocationError(f"{name}: expecting a number of 0 or more, got {found!r}")
    return found


def price(run: Run, rate: float, found: Estimate = NOTHING, rule: str = "poppa") -> Price:
    """Price a run.

    The time that the shutter stopped the job is not charged by any rule. Estimates above 1 count as 1, because nobody
    pays more for being undisturbed.

    :param run: the completed run.
    :param rate: service units per core and second.
    :param found: estimate of the job's performance; without one the price is full, and may be anything below it.
    :param rule: ``poppa``, ``as-usual``, ``oracle`` (by the known run time alone), or ``module:function`` of a factor.
    :raises ColocationError: if the rule is unknown, or the oracle lacks the run time alone.
    """
    if not 0 <= rate < math.inf:
        raise ColocationError(f"rate: expecting a number of 0 or more, got {rate!r}")
    ends, raw = _ends(run, found, rule)
    factor = None if rule in RULES else find_factor(rule)
    amounts = [_amount(run, rate, one, rule, factor) for one in ends]
    alone = run.charged_seconds * ends[0]
    undisturbed = run.cores * alone * (rate if factor is None else _value(rule, factor, alone, alone))
    return Price(rule, amounts[0], min(amounts), max(amounts), ends[0], raw, undisturbed)


def _ends(run: Run, found: Estimate, rule: str) -> tuple[list[float], float]:
    """Return the clamped performance and the ends of its interval, and the performance before it is clamped."""
    if rule == "oracle":
        if run.solo_seconds is None:
            raise ColocationError(f"job {run.job}: expecting its run time alone for the oracle, got none")
        raw = run.solo_seconds / run.charged_seconds if run.charged_seconds else 1.0
        return [min(1.0, raw)] * 3, raw
    least = 1e-6  # a job that ran made progress
    return [min(1.0, max(least, one)) for one in (found.performance, found.low, found.high)], found.performance


def _amount(run: Run, rate: float, performance: float, rule: str, factor: Factor | None) -> float:
    shared = run.charged_seconds
    solo = performance * shared
    if rule == "as-usual":
        return rate * run.cores * shared
    if factor is None:
        return rate * performance * run.cores * solo
    return _value(rule, factor, solo, shared) * run.cores * solo
