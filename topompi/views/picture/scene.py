"""Lines, boxes and words in pixels: what any writer of pictures can draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Box", "Line", "Scene", "Text"]

LETTER = 0.56  # width of a letter, in parts of its height, about


@dataclass(frozen=True)
class Line:
    """A line through some points.

    :param points: (x, y) of each.
    :param colour: of the line.
    :param width: in pixels.
    :param tip: words shown where the pointer rests on it.
    :param ends: numbers of the nodes at its ends.
    """

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float
    tip: str = ""
    ends: tuple[int, int] = (-1, -1)


@dataclass(frozen=True)
class Box:
    """A filled rectangle.

    :param x: left edge; likewise ``y``, the upper one, ``width`` and ``height``.
    :param colour: of the area.
    :param edge: colour of its outline; empty for none.
    :param tip: words shown where the pointer rests on it.
    :param node: number of the node that it stands for; -1 for none.
    """

    x: float
    y: float
    width: float
    height: float
    colour: str
    edge: str = ""
    tip: str = ""
    node: int = -1


@dataclass(frozen=True)
class Text:
    """A line of words.

    :param x: anchor; likewise ``y``, the base line.
    :param words: the text.
    :param size: of the letters.
    :param anchor: ``start``, ``middle`` or ``end``: the part of the text at ``x``.
    :param colour: of the letters.
    :param bold: whether they are bold.
    """

    x: float
    y: float
    words: str
    size: float = 11
    anchor: str = "start"
    colour: str = "#222222"
    bold: bool = False

    @property
    def length(self) -> float:
        """Pixels that it takes, about."""
        return LETTER * self.size * len(self.words)


@dataclass
class Scene:
    """One picture.

    :param width: in pixels; likewise ``height``.
    :param title: its heading.
    :param items: what is drawn, the first below the others.
    """

    width: float
    height: float
    title: str
    items: list[Line | Box | Text] = field(default_factory=list)

    def lines(self) -> Sequence[Line]:
        """The lines among the items."""
        return [one for one in self.items if isinstance(one, Line)]
