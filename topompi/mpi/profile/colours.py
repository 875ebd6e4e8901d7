"""Colours for pairs of ranks, one per number of hops, in pictures and on the interactive page."""

from __future__ import annotations

from collections.abc import Iterable

from ...inputs.figures import DISTANCES, FURTHER, colours_by_hops
from .errors import ProfileError

__all__ = ["DEFAULT", "PALETTES", "colours_of"]

# By name of the palette: fixed colours by number of hops (0 within a host), and the colours of all other numbers, in
# order of use. ``reference`` is the palette of Subramoni 2013, section 7; ``colour-blind``, the default, can be told
# apart by readers with colour blindness, too.
PALETTES: dict[str, tuple[dict[int, str], tuple[str, ...]]] = {
    "colour-blind": (DISTANCES, FURTHER),
    "reference": (
        {0: "#d62728", 1: "#2ca02c", 3: "#1f6fd6", 5: "#e377c2", 7: "#17becf"},
        ("#ff7f0e", "#9467bd", "#8c564b", "#bcbd22", "#7f7f7f"),
    ),
}
DEFAULT = "colour-blind"


def colours_of(hops: Iterable[int], palette: str = DEFAULT) -> dict[int, str]:
    """Return a colour per number of hops, the smallest number first; pairs of ranks without a route are last.

    If there are more numbers than colours, the surplus numbers share the last colour.

    :param hops: numbers of hops between pairs of ranks, repeated or not; negative for pairs without a route.
    :param palette: name of a palette, a key of ``PALETTES``.
    :raises ProfileError: if the palette is unknown.
    """
    if palette not in PALETTES:
        raise ProfileError(f"expecting a palette of {', '.join(PALETTES)}, got {palette!r}")
    return colours_by_hops(hops, *PALETTES[palette])
