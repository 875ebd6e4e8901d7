"""Short forms of names and numbers for pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ...errors import SourceError
from ...inputs.hostlist import compress
from ...topology import Fabric

__all__ = [
    "amount",
    "cut",
    "further",
    "level_words",
    "link_name",
    "listed",
    "ranges",
    "switch_names",
    "without_common_end",
]


def without_common_end(names: Sequence[str]) -> list[str]:
    """Leave out the end that all of several names share, from a separator on, for example ``:MQM9701/U1``."""
    if len(names) < 2:
        return list(names)
    backwards = zip(*(reversed(name) for name in names), strict=False)
    shared = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, backwards))
    tail = names[0][len(names[0]) - shared :]
    at = next((place for place, letter in enumerate(tail) if letter in ":/ "), len(tail))
    return [name[: len(name) - len(tail) + at] or name for name in names]


def listed(names: Sequence[str]) -> str:
    """Write names as a host list if possible, else separated by commas."""
    try:
        return compress(names)
    except SourceError:
        return ", ".join(names)


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers as ranges, for example ``0-3,8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def amount(value: float, unit: str) -> str:
    """Write a value with its unit and the decimal prefix that makes it shortest, for example ``1.5 GB``."""
    power = next((power for power in range(5) if value < 1000 ** (power + 1)), 5)
    return f"{value / 1000**power:.3g} {('', 'K', 'M', 'G', 'T', 'P')[power]}{unit}"


def switch_names(fabric: Fabric) -> list[str]:
    """Label of each switch: its name if no other switch has the same, else its id."""
    times = Counter(fabric.switch_names)
    pairs = zip(fabric.switch_names, fabric.switch_ids, strict=True)
    return [name if name and times[name] == 1 else identity for name, identity in pairs]


def link_name(fabric: Fabric, link: int) -> str:
    """Display name of a link, ``source → target``."""
    return " → ".join(_vertex(fabric, int(ends[link])) for ends in (fabric.link_source, fabric.link_target))


def _vertex(fabric: Fabric, vertex: int) -> str:
    if vertex < fabric.num_adapters:
        return fabric.hosts[int(fabric.adapter_host[vertex])]
    return switch_names(fabric)[vertex - fabric.num_adapters]


def level_words(facts: dict[str, Any] | None, drawn: int, ratio: float | None, over: bool) -> tuple[str, ...]:
    """Describe a level of switches in two short lines, or none.

    :param facts: row of the level from `summary.levels_of`; None if no route crosses the level.
    :param drawn: number of switches of the level in the picture.
    :param ratio: over-subscription of the level; None if unknown.
    :param over: whether the level is marked as over-subscribed.
    """
    if facts is None:
        return ()
    crossed = f"{facts['switches']:,} of " if facts["switches"] != drawn else ""  # no route crosses the other switches
    words = f"{crossed}{drawn:,} switch{'es' * (drawn != 1)}"
    if facts["top"]:
        return words, "top"
    if ratio is None:
        return words, "cables unknown"
    return words, f"{ratio:.3g} : 1" + (" over-subscribed" if over else "")


def cut(words: str, most: int) -> str:
    """Shorten a text to at most ``most`` letters of its beginning."""
    return words if len(words) <= most else words[: most - 1] + "…"


def further(count: int, most: int) -> str:
    """Return how many members of a group are not named, in at most ``most`` letters if possible."""
    return f"+ {count:,} more" if len(f"+ {count:,} more") <= most else f"+ {count:,}"
