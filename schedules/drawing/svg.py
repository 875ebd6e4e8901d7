"""The subset of scalable vector graphics (SVG) that the drawings of schedules use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from ...visible import unmarked

__all__ = ["GREY", "INK", "Canvas"]

Floats = NDArray[np.floating]

GREY, INK, PAPER = "#9a9a9a", "#222222", "#ffffff"
LETTER = 6.2  # approximate width in pixels of a letter of a legend


@dataclass
class Canvas:
    """The elements of one drawing on a white background; coordinates are pixels from the upper left corner."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text(8, 24, self.title, size=15, bold=True)

    def add(self, tag: str, content: str = "", **attributes: object) -> None:
        """Add an element; coordinates are rounded to 0.1 pixel, and _ in attribute names becomes -.

        :param tag: name of the element.
        :param content: its text or inner elements, escaped.
        :param attributes: its attributes.
        """
        words = (f"{name.replace('_', '-')}={quoteattr(_short(value))}" for name, value in attributes.items())
        self.parts.append(f"<{tag} {' '.join(words)}{f'>{content}</{tag}>' if content else '/>'}")

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> None:
        """Draw a straight line.

        :param x1: horizontal position of one end in pixels.
        :param y1: vertical position of this end in pixels.
        :param x2: horizontal position of the other end in pixels.
        :param y2: vertical position of the other end in pixels.
        :param colour: colour of the line.
        :param width: width of the line in pixels.
        """
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)

    def circle(self, x: float, y: float, radius: float, colour: str, tip: str) -> None:
        """Draw a filled circle.

        :param x: horizontal position of the centre in pixels.
        :param y: vertical position of the centre in pixels.
        :param radius: radius in pixels.
        :param colour: colour of the area.
        :param tip: text shown when the pointer rests on the circle.
        """
        self.add("circle", f"<title>{escape(tip)}</title>", cx=x, cy=y, r=radius, fill=colour)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: int = 12,
        colour: str = INK,
        bold: bool = False,
    ) -> None:
        """Write a line of text.

        :param x: horizontal position of the anchor in pixels.
        :param y: vertical position of the base line in pixels.
        :param words: the text.
        :param anchor: part of the text that is at ``x``: ``start``, ``middle`` or ``end``.
        :param size: size of the letters in pixels.
        :param colour: colour of the letters.
        :param bold: whether the letters are bold.
        """
        weight = {"font_weight": "bold"} if bold else {}
        self.add("text", escape(words), x=x, y=y, text_anchor=anchor, font_size=size, fill=colour, **weight)

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Draw a filled rectangle.

        :param x: left edge in pixels.
        :param y: upper edge in pixels.
        :param width: width in pixels.
        :param height: height in pixels.
        :param colour: colour of the area.
        """
        self.add("rect", x=x, y=y, width=width, height=height, fill=colour)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """Draw the outline of a rectangle.

        :param x: left edge in pixels.
        :param y: upper edge in pixels.
        :param width: width in pixels.
        :param height: height in pixels.
        """
        self.add("rect", x=x, y=y, width=width, height=height, fill="none", stroke=GREY, stroke_width=1)

    def cells(self, x: Floats, y: Floats, width: float, height: float, colour: str) -> None:
        """Draw equal cells of a chart as one path, with gaps between cells wider than 6 pixels.

        :param x: left edge of each cell in pixels, shape (cells,).
        :param y: upper edge of each cell in pixels, shape (cells,).
        :param width: width of every cell in pixels.
        :param height: height of every cell in pixels.
        :param colour: colour of the cells.
        """
        gap = 1 if width > 6 else 0
        shape = f"h{_short(width - gap)}v{_short(height - 1)}h{_short(gap - width)}z"
        corners = zip(x.tolist(), y.tolist(), strict=True)
        if len(x):
            self.add("path", d="".join(f"M{_short(a)} {_short(b)}{shape}" for a, b in corners), fill=colour)

    def steps(self, left: float, y: float, steps: int, width: float) -> list[int]:
        """Write the numbers of steps over their columns, as many as have room; return the numbers.

        :param left: left edge of the first column in pixels.
        :param y: vertical position of the base line in pixels.
        :param steps: number of steps.
        :param width: width of a column in pixels.
        """
        room = 12 + LETTER * len(str(steps))  # pixels; of a number and the gap to the next
        every = next(one * 10**ten for ten in range(20) for one in (1, 2, 5) if one * 10**ten * width >= room)
        self.text(left - 6, y, "step", anchor="end", size=10)
        for step in range(0, steps, every):
            self.text(left + width * (step + 0.5), y, f"{step:,}", anchor="middle", size=10)
        return list(range(0, steps, every))

    def legend(self, y: float, entries: Sequence[tuple[str, str]]) -> None:
        """Draw coloured squares with their texts, side by side."""
        x = 8.0
        for colour, words in entries:
            self.bar(x, y, 12, 12, colour)
            self.text(x + 17, y + 10, words, size=11)
            x += 34 + LETTER * len(words)

    def svg(self) -> str:
        """The drawing as a complete SVG document."""
        size = f'width="{_short(self.width)}" height="{_short(self.height)}"'
        return unmarked(
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_short(self.width)} {_short(self.height)}" '
            f'font-family="sans-serif">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def _short(value: object) -> str:
    return f"{float(value):.1f}".removesuffix(".0") if isinstance(value, (int, float, np.number)) else str(value)
