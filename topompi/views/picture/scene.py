"""Scenes, that is, lines, boxes and texts with pixel coordinates, independent of the output format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap

__all__ = ["Box", "Line", "Scene", "Text", "letters", "paragraph"]

LETTER = 0.56  # approximate width of a letter as a multiple of its height, because no font is measured


@dataclass(frozen=True)
class Line:
    """A line of a picture, through some points.

    :param points: (x, y) of each point in pixels.
    :param colour: colour of the line.
    :param width: width in pixels.
    :param tip: tool tip, shown when the pointer rests on the line.
    :param ends: numbers of the nodes (boxes of switches) at its ends; -1 if an end is at no node.
    :param jobs: names of the jobs that it belongs to, with blanks between them, for the page around the picture.
    """

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float
    tip: str = ""
    ends: tuple[int, int] = (-1, -1)
    jobs: str = ""


@dataclass(frozen=True)
class Box:
    """A filled rectangle of a picture.

    :param x: left edge in pixels.
    :param y: upper edge in pixels.
    :param width: width in pixels.
    :param height: height in pixels.
    :param colour: colour of the area.
    :param edge: colour of the outline; empty if there is no outline.
    :param tip: tool tip, shown when the pointer rests on the box.
    :param node: number of the node (switches drawn as one box) that it represents; -1 if it is no node.
    :param jobs: names of the jobs that it belongs to, with blanks between them, for the page around the picture.
    """

    x: float
    y: float
    width: float
    height: float
    colour: str
    edge: str = ""
    tip: str = ""
    node: int = -1
    jobs: str = ""


@dataclass(frozen=True)
class Text:
    """A line of text.

    :param x: horizontal position of the anchor in pixels.
    :param y: vertical position of the base line in pixels.
    :param words: the text.
    :param size: height of the letters in pixels.
    :param anchor: part of the text that is at ``x``: ``start``, ``middle`` or ``end``.
    :param colour: colour of the letters.
    :param bold: whether the letters are bold.
    :param jobs: names of the jobs that it belongs to, with blanks between them, for the page around the picture.
    """

    x: float
    y: float
    words: str
    size: float = 11
    anchor: str = "start"
    colour: str = "#222222"
    bold: bool = False
    jobs: str = ""

    @property
    def length(self) -> float:
        """Approximate length of the text in pixels."""
        return LETTER * self.size * len(self.words)


@dataclass
class Scene:
    """A picture as a list of items to draw.

    :param width: width in pixels.
    :param height: height in pixels.
    :param title: title of the picture.
    :param items: items to draw in this order; later items cover earlier ones.
    """

    width: float
    height: float
    title: str
    items: list[Line | Box | Text] = field(default_factory=list)

    def lines(self) -> Sequence[Line]:
        """The items that are lines, in their order."""
        return [one for one in self.items if isinstance(one, Line)]


def paragraph(x: float, y: float, words: str, width: float, colour: str, size: float = 11) -> list[Text]:
    """Return the lines of a text that is broken between words.

    :param x: left edge in pixels.
    :param y: base line of the first line in pixels.
    :param words: the text.
    :param width: greatest length of a line in pixels.
    :param colour: colour of the letters.
    :param size: height of the letters in pixels.
    """
    lines = wrap(words, int(width / (LETTER * size)), break_long_words=False)
    return [Text(x, y + at * (size + 3), line, size, colour=colour) for at, line in enumerate(lines)]


def letters(width: float, size: float) -> int:
    """Return the number of letters that fit a box.

    :param width: width of the box in pixels.
    :param size: height of the letters in pixels.
    """
    return max(3, int((width - 4) / (LETTER * size)))
