"""Short forms of names and numbers for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import SourceError
from ...inputs.figures import cut_middle
from ...inputs.hostlist import compress
from ...topology import Fabric
from ...topology.labels import end_name, switch_labels

__all__ = [
    "amount",
    "cut",
    "fitting",
    "further",
    "level_words",
    "link_name",
    "listed",
    "ranges",
]


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


def link_name(fabric: Fabric, link: int, labels: Sequence[str] | None = None) -> str:
    """Display name of a link, ``source → target``.

    :param fabric: fabric of the link.
    :param link: number of the link.
    :param labels: names of the fabric's switches; by default those of `switch_labels`.
    """
    known = switch_labels(fabric) if labels is None else labels
    return " → ".join(end_name(fabric, known, int(ends[link])) for ends in (fabric.link_source, fabric.link_target))


def level_words(facts: dict[str, Any] | None, drawn: int, ratio: float | None, over: bool) -> tuple[str, ...]:
    """Describe a level of switches in two short lines.

    :param facts: row of the level from `summary.levels_of`; None if no route crosses the level.
    :param drawn: number of switches of the level in the picture.
    :param ratio: over-subscription of the level; None if unknown.
    :param over: whether the level is marked as over-subscribed.
    """
    if facts is None:
        return f"{drawn:,} switch{'es' * (drawn != 1)}", "on no route"
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


def fitting(most: int, *texts: str) -> str:
    """Return the first of some texts, from long to short, that has at most ``most`` letters; else the last, cut."""
    return next((text for text in texts if len(text) <= most), cut_middle(texts[-1], most))


def further(count: int, most: int) -> str:
    """Return how many members of a group are not named, in at most ``most`` letters if possible."""
    return fitting(most, f"+ {count:,} more", f"+ {count:,}")
