"""Spider plots of profiles as SVG: five axes from 0 to the system's bounds, a polygon per program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from ....visible import visible
from .system import AXES, Tag

__all__ = ["MOST", "spider"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by colour-blind readers
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 4")
MOST = len(COLOURS)  # programs in one picture
_WIDTH, _CENTRE, _RADIUS, _RINGS = 520, (260, 215), 150, 4


def spider(tags: Sequence[Tag]) -> str:
    """Return a spider plot of up to ``MOST`` programs as SVG.

    An unknown axis interrupts the program's outline; a value above the bound is drawn at the bound.

    :param tags: normalised profiles of the programs.
    """
    height = 2 * _CENTRE[1] - 10 + 20 * len(tags)
    title = escape("Profiles of " + ", ".join(visible(tag.program) for tag in tags))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="13" role="img"><title>{title}</title>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        *_web(),
    ]
    for number, tag in enumerate(tags):
        parts += _outline(tag, COLOURS[number % MOST], DASHES[number % MOST])
        y = 2 * _CENTRE[1] - 20 + 20 * number
        dash = f' stroke-dasharray="{DASHES[number % MOST]}"' if DASHES[number % MOST] else ""
        parts.append(f'<path d="M40 {y - 4}H80" stroke="{COLOURS[number % MOST]}" stroke-width="2.5"{dash}/>')
        missing = [name for name, value in zip(AXES, tag.axes, strict=True) if math.isnan(value)]
        note = f" (unknown: {', '.join(missing)})" if missing else ""
        parts.append(f'<text x="90" y="{y}" fill="#222222">{escape(visible(tag.program) + note)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _place(axis: int, value: float) -> tuple[float, float]:
    angle = 2 * math.pi * axis / len(AXES) - math.pi / 2
    return _CENTRE[0] + _RADIUS * value * math.cos(angle), _CENTRE[1] + _RADIUS * value * math.sin(angle)


def _web() -> list[str]:
    """Return the rings, the axes and their names."""
    parts = []
    for ring in range(1, _RINGS + 1):
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_place(axis, ring / _RINGS) for axis in range(len(AXES))))
        parts.append(f'<polygon points="{corners}" fill="none" stroke="#cccccc"/>')
    for axis, name in enumerate(AXES):
        x, y = _place(axis, 1.0)
        parts.append(f'<path d="M{_CENTRE[0]} {_CENTRE[1]}L{x:.1f} {y:.1f}" stroke="#cccccc"/>')
        x, y = _place(axis, 1.1)
        side = "middle" if abs(x - _CENTRE[0]) < 5 else "start" if x > _CENTRE[0] else "end"
        parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{side}" fill="#222222">{name}</text>')
    x, y = _place(0, 1.0)
    parts.append(f'<text x="{x + 5:.1f}" y="{y + 14:.1f}" font-size="11" fill="#666666">1</text>')
    return parts


def _outline(tag: Tag, colour: str, dash: str) -> list[str]:
    places = [None if math.isnan(value) else _place(axis, min(value, 1.0)) for axis, value in enumerate(tag.axes)]
    known = [place for place in places if place is not None]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    style = f'stroke="{colour}" stroke-width="2.5"{dashed}'
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in known]
    if len(known) == len(AXES):
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        return [f'<polygon points="{corners}" fill="{colour}" fill-opacity="0.12" {style}/>', *dots]
    lines = []
    for axis, start in enumerate(places):
        end = places[(axis + 1) % len(places)]
        if start is not None and end is not None:
            lines.append(f'<path d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}" fill="none" {style}/>')
    return lines + dots
