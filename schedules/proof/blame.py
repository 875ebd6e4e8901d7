"""The search for the first reduction that made a value wrong.

The value is known to be wrong from `contributions`, by a sum of random weights, which does not tell which contribution
is wrong. Therefore the set of contributions to each partial sum of this value is computed here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .error import Violation
from .history import History
from .values import Reductions

__all__ = ["Ancestry"]


class Ancestry:
    """The reductions that led to one value, and the set of input blocks that each reduction has combined.

    A set is an integer with a bit for each input block that contributes to the value, in ascending order of rank, then
    block.

    :param history: moves and writes of the schedule.
    :param reductions: all reductions of the schedule.
    :param value: number of the value.
    Cost: O(reductions on the way x contributions) bits, in pure Python, because only wrong values are examined.
    """

    def __init__(self, history: History, reductions: Reductions, value: int) -> None:
        self._history, self._reductions, self._value = history, reductions, value
        inputs = history.places.num_inputs
        found, left = {value}, [value]
        while left:
            value = left.pop()
            if value >= inputs:
                fresh = set(reductions.operands(value - inputs)) - found
                found |= fresh
                left += fresh
        self._contributors = sorted(value for value in found if value < inputs)
        self._numbers = sorted(value - inputs for value in found if value >= inputs)

    @cached_property
    def _sets(self) -> dict[int, int]:
        sets = {place: 1 << bit for bit, place in enumerate(self._contributors)}
        for number in self._numbers:
            whole = 0
            for part in self._reductions.operands(number):
                whole |= sets[part]
            sets[self._history.places.num_inputs + number] = whole
        return sets

    def first_fault(self, commutative: bool) -> Violation | None:
        """The violation by the first reduction that adds a contribution twice, mixes blocks or breaks rank order.

        None if no reduction does.

        :param commutative: whether rank order may be broken.
        """
        for number in self._numbers:
            first, *terms = self._reductions.operands(number)
            whole = self._sets[first]
            for term, move in zip(terms, self._reductions.moves_of(number), strict=True):
                place = self._history.places.name(int(self._history.write[move]))
                fault = self._fault(whole, self._sets[term], place, commutative)
                if fault:
                    return Violation(int(self._history.row[move]), fault)
                whole |= self._sets[term]
        return None

    def _fault(self, here: int, new: int, place: str, commutative: bool) -> str:
        """The fault of reducing the set ``new`` into the set ``here``, in words; empty if there is none."""
        if here & new:
            twice = self._history.places.name(self._members(here & new)[0])
            return f"{twice} is reduced twice into {place}"
        ranks, blocks = self._ranks_and_blocks(here | new)
        holds = f"{place} holds {self._describe(here)}, and {self._describe(new)}"
        if len(blocks) > 1:
            return f"{holds} is another block"
        if not commutative and len(ranks) != ranks[-1] - ranks[0] + 1:
            return f"{holds} is not next in rank order"
        return ""

    @property
    def contents(self) -> str:
        """The contributions to the value, in words, for error messages."""
        return self._describe(self._sets[self._value])

    def _members(self, bits: int) -> list[int]:
        return [place for bit, place in enumerate(self._contributors) if bits >> bit & 1]

    def _ranks_and_blocks(self, bits: int) -> tuple[list[int], list[int]]:
        at = [self._history.places.locate(place) for place in self._members(bits)]
        return sorted({rank for _, rank, _ in at}), sorted({block for *_, block in at})

    def _describe(self, bits: int) -> str:
        ranks, blocks = self._ranks_and_blocks(bits)
        runs = np.split(ranks, np.flatnonzero(np.diff(ranks) != 1) + 1)
        spans = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
        some = "blocks" if len(blocks) > 1 else "block"
        return f"input {some} {', '.join(map(str, blocks))} of {'ranks' if len(ranks) > 1 else 'rank'} {spans}"
