"""The mappings found so far: the best one, and a few others as starting points."""

from __future__ import annotations

from collections.abc import Callable

from ..mapping import Mapping

__all__ = ["Pool"]

MOST = 3


class Pool:
    """The few best mappings found so far, all of different cost.

    :param price: function that computes the cost of a mapping.
    :param tie: function that decides between mappings of equal cost; the lower value wins.
    :param given: mapping to beat; it stays the best unless a found mapping costs less, or as much with a lower ``tie``.
    :ivar first: cost of the mapping to beat.
    :ivar best: best mapping.
    :ivar least: cost of the best mapping.
    """

    def __init__(self, price: Callable[[Mapping], float], tie: Callable[[Mapping], float], given: Mapping) -> None:
        self._price, self._tie = price, tie
        self.least = self.first = price(given)
        self.given = self.best = given
        self._others: list[tuple[float, Mapping]] = [(self.least, given)]

    def offer(self, found: Mapping) -> None:
        """Compare a mapping with the best one, and keep it if it is among the few best of different costs."""
        cost = self._price(found)
        if cost < self.least or (cost == self.least and self._tie(found) < self._tie(self.best)):
            self.best, self.least = found, cost
        if all(cost != other for other, _ in self._others):
            self._others = sorted([*self._others, (cost, found)], key=lambda one: one[0])[:MOST]

    def starts(self, count: int) -> list[Mapping]:
        """At most ``count`` of the few best mappings of different costs, the best first."""
        return [self.best, *(found for _, found in self._others[1:])][:count]

    def start(self, number: int) -> Mapping:
        """The mapping of rank ``number`` in the order of cost, 0 for the best; if fewer are kept, also the best."""
        return self._others[number][1] if 0 < number < len(self._others) else self.best
