"""Cases that cover all pairs: few rows of a product, in which each two values of two factors occur together."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

Value = Hashable
Pair = frozenset[tuple[str, Value]]
Factors = Mapping[str, Sequence[Value]]
Excluded = Callable[[Mapping[str, Any]], bool]
Meet = Callable[[str, str], bool]


def pair(one: str, value: Value, other: str, other_value: Value) -> Pair:
    """Two values of two factors."""
    return frozenset(((one, value), (other, other_value)))


def pairs_of(case: Mapping[str, Value]) -> set[Pair]:
    """All pairs of values that a case has."""
    return {pair(a, case[a], b, case[b]) for a, b in combinations(case, 2)}


def wanted_pairs(factors: Factors, excluded: Excluded, meet: Meet) -> set[Pair]:
    """The pairs of values that some case is to have.

    :param factors: the values of each factor.
    :param excluded: whether two values, given as a dictionary of two factors, cannot be in one case.
    :param meet: whether all values of one factor, named first in ``factors``, are to meet all values of another.
    """
    return {
        pair(a, x, b, y)
        for a, b in combinations(factors, 2)
        if meet(a, b)
        for x in factors[a]
        for y in factors[b]
        if not excluded({a: x, b: y})
    }


def covering(factors: Factors, excluded: Excluded, meet: Meet, generator: Random) -> Iterator[dict[str, Value]]:
    """Cases that together have all wanted pairs: greedily, each begins with a pair that is missing.

    :param factors: as in ``wanted_pairs``; likewise ``excluded`` and ``meet``.
    :param generator: of random numbers; equal ones give equal cases.
    :raises ValueError: if a pair that is wanted cannot be completed to a case.
    """
    missing = wanted_pairs(factors, excluded, meet)
    order = sorted(missing, key=lambda one: sorted(map(repr, one)))
    generator.shuffle(order)
    for begin in order:
        if begin in missing:
            case = _completed(dict(begin), factors, excluded, missing, generator)
            missing -= pairs_of(case)
            yield case


def _completed(
    case: dict[str, Value], factors: Factors, excluded: Excluded, missing: set[Pair], generator: Random
) -> dict[str, Value]:
    """The case with a value of every factor, each the one that brings most of the missing pairs."""
    for _ in range(100):
        grown = dict(case)
        rest = [name for name in factors if name not in case]
        generator.shuffle(rest)
        for name in rest:
            values = [
                value
                for value in generator.sample(list(factors[name]), len(factors[name]))
                if not any(excluded({name: value, other: there}) for other, there in grown.items())
            ]
            if not values:
                break
            grown[name] = max(
                values,
                key=lambda value, name=name: sum(pair(name, value, *there) in missing for there in grown.items()),
            )
        else:
            return {name: grown[name] for name in factors}
    raise ValueError(f"expecting a case that has {case}, got none in 100 tries")
