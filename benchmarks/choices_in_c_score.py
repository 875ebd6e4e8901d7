"""The share of the gain by the best of a library's algorithms that a file of choices gives, from measured times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topompi.prediction.libraries.openmpi.fixed import fixed_decision
from topompi.prediction.librarychoices import OVER_HOSTS

__all__ = ["FLOOR", "METHODS", "OWN", "Cell", "rechosen", "share", "tables"]

FLOOR = 0.97  # least ratio of times without and with rules for a collective in an arena
OWN, RULES = (-1, 0), (0, 0)  # the library's own choice, and the rules file
# The names of coll/tuned's algorithms, as `ompi_info` of 5.0.11 prints them, by their numbers.
_WORDS = {
    "Bcast": "basic_linear chain pipeline split_binary_tree binary_tree binomial knomial scatter_allgather "
    "scatter_allgather_ring",
    "Reduce": "linear chain pipeline binary binomial in-order_binary rabenseifner",
    "Allreduce": "basic_linear nonoverlapping recursive_doubling ring segmented_ring rabenseifner",
    "Allgather": "linear bruck recursive_doubling ring neighbor two_proc sparbit",
    "Alltoall": "linear pairwise modified_bruck linear_sync two_proc",
    "Reduce_scatter": "non-overlapping recursive_halving ring butterfly",
    "Reduce_scatter_block": "basic_linear recursive_doubling recursive_halving butterfly",
    "Gather": "basic_linear binomial linear_sync",
    "Scatter": "basic_linear binomial linear_nb",
}
METHODS: Mapping[str, Mapping[int, str]] = {
    method: dict(enumerate(words.split(), 1)) for method, words in _WORDS.items()
}


@dataclass(frozen=True)
class Cell:
    """The measured calls of one collective and size in one arena.

    :param arena: network, rate of uplinks, order of ranks, ranks of a host.
    :param method: mpi4py's name of the call.
    :param nbytes: bytes of a message, of a reduction's vector, else of a block.
    :param times: seconds of the calls of each side, by number of the algorithm and bytes of a segment, round by round.
    :param ours: the side that the file of choices stands for.
    """

    arena: tuple[str, str, str, int]
    method: str
    nbytes: int
    times: Mapping[tuple[int, int], NDArray[np.float64]]
    ours: tuple[int, int] = RULES

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Cell:
        """The cell of a measurement; sides that the library refused are left out."""
        arena = found["network"], found["uplinks"], found["order"], found["ppn"]
        sides = {(one["number"], one["segment"]): one["seconds"] for one in found["sides"] if one["seconds"]}
        times = {side: np.array(values) for side, values in sides.items()}
        return cls(arena, found["method"], found["nbytes"], times)

    @property
    def gain(self) -> float:
        """The logarithm of the ratio of times without and with the file, by medians."""
        return 0.0 if self.ours == OWN else self._log(OWN) - self._log(self.ours)

    @property
    def offered(self) -> float:
        """The logarithm of the ratio of the times of the library's own choice and of its fastest algorithm.

        The fastest algorithm in one half of the rounds is timed by the other half, in both ways, because the least of
        many medians is too small. Algorithms that were measured in fewer rounds than the library's choice were slow.
        """
        number = len(self.times[OWN])
        sides = [side for side, values in self.times.items() if len(values) == number]
        rows = np.array([self.times[side] for side in sides])
        if number < 2:
            return 0.0
        first, second = (np.log(np.median(rows[:, half::2], axis=1)) for half in (0, 1))
        own = sides.index(OWN)
        gains = [timed[own] - timed[np.argmin(chosen)] for chosen, timed in ((first, second), (second, first))]
        return float(np.mean(gains))

    @property
    def best(self) -> tuple[int, int]:
        """The side with the shortest median."""
        return min(self.times, key=self._log)

    def _log(self, side: tuple[int, int]) -> float:
        return float(np.log(np.median(self.times[side])))


def rechosen(cell: Cell, number: int, segment: int, ranks: int) -> Cell | None:
    """The cell with another choice in place of the measured rules; None if its time is unknown.

    :param cell: the cell.
    :param number: number of the algorithm; 0 for the choice of coll/tuned.
    :param segment: bytes of a segment; 0 for whole messages.
    :param ranks: number of ranks.
    """
    if number == 0 and (cell.arena[3] == 1 or cell.method not in OVER_HOSTS):
        return replace(cell, ours=OWN)  # the same algorithm, so that its time is the same
    if number == 0:
        of_block = cell.method == "Reduce_scatter_block"
        word = fixed_decision(cell.method, ranks, cell.nbytes // ranks if of_block else cell.nbytes)
        number = next(number for number, other in METHODS[cell.method].items() if other == word)
    return replace(cell, ours=(number, segment)) if (number, segment) in cell.times else None


def share(cells: Sequence[Cell]) -> float:
    """The gain with the file over the gain that the library's fastest algorithms offer, both as sums of logarithms.

    It is NaN if they offer less than 2 % a cell.
    """
    offered = sum(one.offered for one in cells)
    return sum(one.gain for one in cells) / offered if offered > 0.02 * len(cells) else float("nan")


def tables(cells: Sequence[Cell]) -> Iterator[str]:
    """Lines of a table by collective and one by arena, and the collectives that are slower with the file."""
    for head, key in (("collective", lambda one: one.method), ("job", lambda one: _words(one.arena))):
        yield f"| {head} | sizes | times as fast with the file | with the fastest algorithm | share of the gain |"
        yield "|---|---|---|---|---|"
        for name, some in _by(cells, key).items():
            yield f"| {name} | {_row(some)} |"
        yield f"| all | {_row(cells)} |\n"
    groups = _by(cells, lambda one: f"{one.method}, {_words(one.arena)}")
    means = sorted((float(np.exp(np.mean([one.gain for one in some]))), name) for name, some in groups.items())
    below = [f"{name}: {mean:.2f}" for mean, name in means if mean < FLOOR]
    yield f"{len(below)} of {len(means)} collectives in a job are below {FLOOR}. The slowest are {means[0][1]}: "
    yield f"{means[0][0]:.2f}; " + "; ".join(below[1:8])


def _by(cells: Sequence[Cell], key: Callable[[Cell], str]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for one in cells:
        groups.setdefault(key(one), []).append(one)
    return groups


def _words(arena: tuple[str, str, str, int]) -> str:
    return "{}, uplinks {}, {}, {} a host".format(*arena)


def _row(cells: Sequence[Cell]) -> str:
    with_file, offered = (np.exp(np.mean([getattr(one, name) for one in cells])) for name in ("gain", "offered"))
    part = share(cells)
    return f"{len(cells)} | {with_file:.2f} | {offered:.2f} | {'' if np.isnan(part) else f'{part:.2f}'}"
