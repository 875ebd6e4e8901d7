"""The colours of hop classes, in pictures and on the interactive page."""

from __future__ import annotations

from collections.abc import Iterable

from ..inputs.figures import DISTANCES, FURTHER, colours_by_hops
from .errors import ProfileError

__all__ = ["DEFAULT", "PALETTES", "colours_of"]

# For each palette the colours by number of hops (0 within a host), then colours for other classes, in order. The
# reference palette is that of Subramoni 2013, section 7; ``colour-blind``, for all colour vision, is the default.
PALETTES: dict[str, tuple[dict[int, str], tuple[str, ...]]] = {
    "colour-blind": (DISTANCES, FURTHER),
    "reference": (
        {0: "#d62728", 1: "#2ca02c", 3: "#1f6fd6", 5: "#e377c2", 7: "#17becf"},
        ("#ff7f0e", "#9467bd", "#8c564b", "#bcbd22", "#7f7f7f"),
    ),
}
DEFAULT = "colour-blind"


def colours_of(hops: Iterable[int], palette: str = DEFAULT) -> dict[int, str]:
    """The colour of each class of pairs by its hops, nearest first, pairs without a route last.

    If there are more classes than colours, the surplus classes share the last colour.

    :param hops: numbers of hops; negative if pairs have no route.
    :param palette: name of a palette, a key of ``PALETTES``.
    :raises ProfileError: if the palette is unknown.
    """
    if palette not in PALETTES:
        raise ProfileError(f"expecting a palette of {', '.join(PALETTES)}, got {palette!r}")
    return colours_by_hops(hops, *PALETTES[palette])
