"""Names and numbers as a picture has room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...errors import SourceError
from ...inputs.hostlist import compress
from ...topology import Fabric

__all__ = ["amount", "cut", "level_words", "link_name", "listed", "ranges", "shortened", "switch_names"]


def shortened(name: str, most: int) -> str:
    """A name of at most so many letters: of a longer one its end, which tells switches of one chassis apart."""
    return name if len(name) <= most else "…" + name[len(name) - most + 1 :]


def listed(names: Sequence[str]) -> str:
    """Names as a host list where they can be written as one."""
    try:
        return compress(names)
    except SourceError:
        return ", ".join(names)


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as ``0-3,8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def amount(value: float, unit: str) -> str:
    """A number of bytes or bytes/s with the prefix that keeps it short."""
    power = next((power for power in range(5) if value < 1000 ** (power + 1)), 5)
    return f"{value / 1000**power:.3g} {('', 'K', 'M', 'G', 'T', 'P')[power]}{unit}"


def switch_names(fabric: Fabric) -> list[str]:
    """What each switch is called: its name, or its id where several have that name, or it has none."""
    times = Counter(fabric.switch_names)
    pairs = zip(fabric.switch_names, fabric.switch_ids, strict=True)
    return [name if name and times[name] == 1 else identity for name, identity in pairs]


def link_name(fabric: Fabric, link: int) -> str:
    """Both ends of a link, by what people call them."""
    return " → ".join(_vertex(fabric, int(ends[link])) for ends in (fabric.link_source, fabric.link_target))


def _vertex(fabric: Fabric, vertex: int) -> str:
    if vertex < fabric.num_adapters:
        return fabric.hosts[int(fabric.adapter_host[vertex])]
    return switch_names(fabric)[vertex - fabric.num_adapters]


def level_words(facts: dict[str, Any] | None, drawn: int, ratio: float | None, over: bool) -> str:
    """What a level is, in a line.

    :param facts: as ``levels_of`` has them; None for a level that it has not.
    :param drawn: switches of the level in the picture.
    :param ratio: its over-subscription; None where it is unknown.
    :param over: whether that is marked.
    """
    if facts is None:
        return ""
    crossed = f"{facts['switches']:,} of " if facts["switches"] != drawn else ""  # the rest are on no route
    words = f"{crossed}{drawn:,} switch{'es' * (drawn != 1)}"
    if facts["top"]:
        return f"{words}, top"
    if ratio is None:
        return f"{words}, cables unknown"
    return f"{words}, {ratio:.3g} : 1" + (" over-subscribed" if over else "")


def cut(words: str, most: int) -> str:
    """The beginning of some words, of at most so many letters."""
    return words if len(words) <= most else words[: most - 1] + "…"
