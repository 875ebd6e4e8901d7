"""Rounds of disjoint pairs, in which each host measures with at most one other at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Pair", "Round", "cut", "disjoint", "tournament"]

Pair = tuple[int, int]
Round = Sequence[Pair]


def tournament(players: int) -> list[Round]:
    """All pairs of players, each once, in the least number of rounds of disjoint pairs, by the circle method.

    One player keeps its place, and all others move on by one place per round. If the number of players is odd, one of
    them has no partner in each round.

    :param players: number of players, which are numbered from 0.
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
    """The pairs in rounds of disjoint pairs, each pair in the first possible round; at most twice the least number."""
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
