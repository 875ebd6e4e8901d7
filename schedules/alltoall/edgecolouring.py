"""Colouring of transfers so that no two of one colour use the same resource: edge colouring with many ends."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

__all__ = ["colour"]

Integers = NDArray[np.int64]
NONE = -1
LEAST_PATIENCE = 5_000


def colour(
    uses: Sequence[Sequence[int]], num_resources: int, colours: int, *, seed: int = 1, patience: int | None = None
) -> Integers:
    """Colour of each transfer, such that transfers that use a common resource differ; as few colours as can be found.

    The transfers take, in their order, the lowest colour free on all their resources. Those for which none is left take
    one where they drive out as few others as they can, which then look for a new place in turn. With two ends this is
    the exchange of two colours along a path by which bipartite graphs are coloured (König, "Über Graphen und ihre
    Anwendung auf Determinantentheorie und Mengenlehre", 1916); with more ends there is no single path to follow, so
    the choice among equals is random. When this has not helped for a while there is one colour more.

    :param uses: resources of each transfer, each of them once; those to be placed first come first.
    :param num_resources: resources are numbered below this.
    :param colours: how many colours to begin with; no fewer than any resource has uses.
    :param seed: of the choice among equals.
    :param patience: moves without progress before a colour is added, by default what is worth it where each colour
        counts.
    Cost: a microsecond or two for each transfer and each further move.
    """
    return _Colouring(uses, num_resources, colours, seed).run(patience)


class _Colouring:
    """Colours given so far. Sets of colours are Python integers, bit c for colour c."""

    def __init__(self, uses: Sequence[Sequence[int]], num_resources: int, colours: int, seed: int) -> None:
        self.uses = uses
        self.colours = colours
        self.busy = [0] * num_resources  # colours in use at each resource
        self.holder: list[dict[int, int]] = [{} for _ in range(num_resources)]  # transfer by colour
        self.chosen = [NONE] * len(uses)
        self.random = Random(seed).random

    def run(self, patience: int | None) -> Integers:
        homeless = [transfer for transfer in range(len(self.uses)) if not self._settle(transfer)]
        fewest, waited = len(homeless), 0
        patience = max(LEAST_PATIENCE, fewest) if patience is None else patience
        while homeless:
            place = int(self.random() * len(homeless))
            homeless[place], homeless[-1] = homeless[-1], homeless[place]
            homeless.extend(self._intrude(homeless.pop()))
            waited += 1
            if len(homeless) < fewest:
                fewest, waited = len(homeless), 0
            elif waited >= patience:
                self.colours, waited = self.colours + 1, 0
        return np.array(self.chosen, dtype=np.int64)

    def _settle(self, transfer: int) -> bool:
        """Give a transfer the lowest free colour, if there is one."""
        taken = 0
        for resource in self.uses[transfer]:
            taken |= self.busy[resource]
        lowest = ~taken & (taken + 1)
        if lowest >> self.colours:
            return False
        self._give(transfer, lowest.bit_length() - 1)
        return True

    def _intrude(self, transfer: int) -> list[int]:
        """Give a transfer a colour at the cost of as few others as possible, and return these."""
        once = twice = thrice = 0
        for resource in self.uses[transfer]:
            busy = self.busy[resource]
            thrice |= twice & busy
            twice |= once & busy
            once |= busy
        every = (1 << self.colours) - 1
        best = every & ~once or every & ~twice or every & ~thrice or every
        start = int(self.random() * self.colours)
        ahead = best >> start << start or best
        colour = (ahead & -ahead).bit_length() - 1
        driven = {self.holder[resource][colour] for resource in self.uses[transfer] if colour in self.holder[resource]}
        for other in driven:
            self._take(other)
        self._give(transfer, colour)
        return sorted(driven)

    def _give(self, transfer: int, colour: int) -> None:
        for resource in self.uses[transfer]:
            self.busy[resource] |= 1 << colour
            self.holder[resource][colour] = transfer
        self.chosen[transfer] = colour

    def _take(self, transfer: int) -> None:
        colour = self.chosen[transfer]
        for resource in self.uses[transfer]:
            self.busy[resource] &= ~(1 << colour)
            del self.holder[resource][colour]
        self.chosen[transfer] = NONE
