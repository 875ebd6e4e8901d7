"""Colouring of transfers so that transfers of one colour share no resource: edge colouring of a hypergraph."""

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
    """The colour of each transfer, shape (transfers,): transfers with a common resource get different colours.

    The search uses few colours: in the given order, each transfer takes the lowest colour that is free on all its
    resources. A transfer without a free colour takes the colour that displaces the fewest other transfers, which then
    look for a new colour. If each transfer has two resources, this is the exchange of two colours along a path that
    colours bipartite graphs (König, "Über Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre", 1916).
    With more resources there is no single path, so the choice among equals is random. A colour is added after
    ``patience`` displacements in which the number of transfers without a colour reached no new minimum.

    :param uses: resources of each transfer, without repetition; transfers are placed in this order.
    :param num_resources: number of resources; they are numbered from 0.
    :param colours: number of colours at the start, at least the largest number of transfers of one resource.
    :param seed: seed of the random choices among equals.
    :param patience: number of such displacements before a colour is added; the default suits schedules in which each
        colour costs a step.
    Cost: 1 to 2 microseconds per transfer and per displacement.
    """
    return _Colouring(uses, num_resources, colours, seed).run(patience)


class _Colouring:
    """A partial colouring. A set of colours is a Python integer with bit c set for colour c."""

    def __init__(self, uses: Sequence[Sequence[int]], num_resources: int, colours: int, seed: int) -> None:
        self.uses = uses
        self.colours = colours
        self.busy = [0] * num_resources  # set of colours in use at each resource
        self.holder: list[dict[int, int]] = [{} for _ in range(num_resources)]  # transfer by colour at each resource
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
        """Give a transfer the lowest free colour, and return whether there is one."""
        taken = 0
        for resource in self.uses[transfer]:
            taken |= self.busy[resource]
        lowest = ~taken & (taken + 1)
        if lowest >> self.colours:
            return False
        self._give(transfer, lowest.bit_length() - 1)
        return True

    def _intrude(self, transfer: int) -> list[int]:
        """Give a transfer the colour that displaces the fewest other transfers, and return the displaced ones."""
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
