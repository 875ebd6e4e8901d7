"""Colours and widths of the lines of a fabric's picture, and the legend that explains them."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs.figures import short_names, span_name
from ...topology import Fabric
from ...topology.labels import switch_labels
from .bundles import Bundle
from .loads import Loads
from .names import amount, fitting, link_name
from .scene import LETTER, Box, Text, paragraph

__all__ = ["GREY", "IDLE", "cable_legend", "load_legend", "load_look"]

# Loads go from light to dark brown, so that no colour of a distance or of a job has a second meaning.
SHADES = ((0.9, "#7f2704"), (0.5, "#e6670d"), (0.0, "#fdb97d"))  # (share of the busiest link's time, colour above it)
IDLE, GREY = "#d4d4d4", "#757575"
MOST_BUSY = 3  # number of busiest links in the legend, if there is room
SIZE = 11  # pixels; height of the letters


def load_look(seconds: float, full: float) -> tuple[str, float]:
    """Colour and width in pixels of the line of a link.

    :param seconds: time in seconds that the link needs for its bytes.
    :param full: time in seconds of a link that is drawn at full width.
    """
    if not seconds:
        return IDLE, 0.8
    share = min(seconds / full, 1.0)
    return next(colour for above, colour in SHADES if share > above or above == 0), 0.8 + 7.2 * share


def cable_legend(width: float, bundles: Sequence[Bundle]) -> list[Box | Text]:
    """Explain the widths of lines in a picture without loads; the first base line is at 0.

    :param width: width of the picture in pixels.
    :param bundles: the lines between switches.
    """
    counts = {one.cables for one in bundles}
    if len(counts) == 1:
        (each,) = counts
        words = f"each line between switches is {each:,} cable{'s' * (each != 1)}"
    else:
        words = "lines: the wider, the more cables"
        words += f", from {min(counts):,} to {max(counts):,} between two boxes" if counts else ""
    return [*paragraph(10, 0, words, width - 20, GREY, SIZE)]


def load_legend(width: float, fabric: Fabric, loads: Loads, full: float) -> list[Box | Text]:
    """Explain the widths and colours of links by load, and name the busiest; the first base line is at 0.

    :param width: width of the picture in pixels.
    :param fabric: fabric of the links.
    :param loads: bytes on the links.
    :param full: time in seconds of a link that is drawn at full width.
    """
    scale = f"; full width: {span_name(full)}" if loads.rated and full else ""
    words = f"width and colour: time that the busiest link between two boxes needs for its bytes{scale}"
    head = paragraph(10, 0, words, width - 20, GREY, SIZE)
    items: list[Box | Text] = [*head]
    x, y = 10.0, head[-1].y
    colours = (*(colour for _, colour in SHADES), IDLE)
    for name, colour in zip(("above 90 % of it", "50 to 90 %", "less", "no bytes"), colours, strict=True):
        items += [Box(x, y + 8, 12, 12, colour), Text(x + 16, y + 18, name, SIZE)]
        x += 40 + LETTER * SIZE * len(name)
    return [*items, Text(10, y + 38, _busiest(fabric, loads, int((width - 20) / (LETTER * SIZE))), SIZE)]


def _busiest(fabric: Fabric, loads: Loads, most: int) -> str:
    """Name the busiest links in at most ``most`` letters: as many as fit, the busiest in any case."""
    labels = short_names(switch_labels(fabric), most)
    links = [f"{link_name(fabric, link, labels)} {amount(loads.bytes[link], 'B')}" for link in loads.busiest(MOST_BUSY)]
    if not links:
        return "no bytes on any link"
    texts = [f"busiest link{'s' * (count > 1)}: {'; '.join(links[:count])}" for count in range(len(links), 0, -1)]
    return fitting(most, *texts)
