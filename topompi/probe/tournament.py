"""Rounds of disjoint pairs: who measures with whom at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Pair", "Round", "cut", "disjoint", "tournament"]

Pair = tuple[int, int]
Round = Sequence[Pair]


def tournament(players: int) -> list[Round]:
    """Every pair once, in as few rounds of disjoint pairs as can be: the circle method.

    One player stays, the others move on by one place a round; with an odd number one of them rests.
    """
    seats = players + players % 2
    rounds: list[Round] = []
    for turn in range(seats - 1):
        circle = [seats - 1, *((turn + place) % (seats - 1) for place in range(seats - 1))]
        facing = ((circle[place], circle[-place]) for place in range(1, seats // 2))
        pairs = [(circle[0], circle[seats // 2]), *facing]
        rounds.append([(min(pair), max(pair)) for pair in pairs if max(pair) < players])
    return rounds


def disjoint(pairs: Iterable[Pair]) -> list[Round]:
    """The pairs in rounds, each in the first round that has neither of its two; at most twice as many as needed."""
    rounds: list[list[Pair]] = []
    busy: list[set[int]] = []
    for pair in pairs:
        free = next((turn for turn, taken in enumerate(busy) if taken.isdisjoint(pair)), len(busy))
        if free == len(busy):
            rounds.append([])
            busy.append(set())
        rounds[free].append(pair)
        busy[free].update(pair)
    return list(rounds)


def cut(rounds: Iterable[Round], width: int) -> list[Round]:
    """The rounds cut to at most ``width`` pairs each."""
    return [pairs[first : first + width] for pairs in rounds for first in range(0, len(pairs), width)]
