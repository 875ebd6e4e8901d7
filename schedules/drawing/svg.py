"""Scalable vector graphics, as much of them as the drawings of schedules need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

__all__ = ["GREY", "INK", "Canvas"]

Floats = NDArray[np.floating]

GREY, INK, PAPER = "#9a9a9a", "#222222", "#ffffff"
LETTER = 6.2  # pixels, about, of a letter of a legend


@dataclass
class Canvas:
    """Elements of one picture, on white, in pixels from its upper left corner."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text(8, 24, self.title, size=15, bold=True)

    def add(self, tag: str, content: str = "", **attributes: object) -> None:
        """An element; coordinates are cut to a tenth of a pixel, names take - for _.

        :param tag: name of the element.
        :param content: its text.
        :param attributes: its attributes; ``_`` stands for ``-``.
        """
        words = (f"{name.replace('_', '-')}={quoteattr(_short(value))}" for name, value in attributes.items())
        self.parts.append(f"<{tag} {' '.join(words)}{f'>{content}</{tag}>' if content else '/>'}")

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> None:
        """A straight line.

        :param x1: start.
        :param y1: start.
        :param x2: end.
        :param y2: end.
        :param colour: of the line.
        :param width: of the line.
        """
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)

    def circle(self, x: float, y: float, radius: float, colour: str, tip: str) -> None:
        """A filled circle.

        :param x: centre.
        :param y: centre.
        :param radius: in pixels.
        :param colour: of the inside.
        :param tip: text shown at the pointer.
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
        """A line of text.

        :param x: where it is anchored.
        :param y: base line.
        :param words: what is written.
        :param anchor: start, middle or end.
        :param size: of the letters.
        :param colour: of the letters.
        :param bold: whether they are bold.
        """
        weight = {"font_weight": "bold"} if bold else {}
        self.add("text", escape(words), x=x, y=y, text_anchor=anchor, font_size=size, fill=colour, **weight)

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle.

        :param x: left.
        :param y: top.
        :param width: in pixels.
        :param height: in pixels.
        :param colour: of the inside.
        """
        self.add("rect", x=x, y=y, width=width, height=height, fill=colour)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """The outline of a rectangle.

        :param x: left.
        :param y: top.
        :param width: in pixels.
        :param height: in pixels.
        """
        self.add("rect", x=x, y=y, width=width, height=height, fill="none", stroke=GREY, stroke_width=1)

    def cells(self, x: Floats, y: Floats, width: float, height: float, colour: str) -> None:
        """Equal cells of a chart, one path for all of a colour, with a gap between them where there is room.

        :param x: left edges, shape (cells,).
        :param y: top edges, shape (cells,).
        :param width: of a cell.
        :param height: of a cell.
        :param colour: of each cell.
        """
        gap = 1 if width > 4 else 0
        shape = f"h{_short(width - gap)}v{_short(height - 1)}h{_short(gap - width)}z"
        corners = zip(x.tolist(), y.tolist(), strict=True)
        if len(x):
            self.add("path", d="".join(f"M{_short(a)} {_short(b)}{shape}" for a, b in corners), fill=colour)

    def legend(self, y: float, entries: Sequence[tuple[str, str]]) -> None:
        """Coloured squares with words, side by side."""
        x = 8.0
        for colour, words in entries:
            self.bar(x, y, 12, 12, colour)
            self.text(x + 17, y + 10, words, size=11)
            x += 34 + LETTER * len(words)

    def svg(self) -> str:
        """The picture as a document of its own."""
        size = f'width="{_short(self.width)}" height="{_short(self.height)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_short(self.width)} {_short(self.height)}" '
            f'font-family="sans-serif">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def _short(value: object) -> str:
    return f"{float(value):.1f}".removesuffix(".0") if isinstance(value, (int, float, np.number)) else str(value)
