"""Writers of scenes as SVG, as a self-contained HTML page, and as PNG."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from ...errors import SourceError
from ...inputs import read_text
from ...inputs.figures import save_figure
from ...inputs.writing import write_text
from ...schedules.drawing.svg import Canvas
from ...visible import unmarked
from .loads import PictureError
from .scene import Box, Line, Scene, Text

__all__ = ["SUFFIXES", "check_file", "html", "svg", "write"]

SUFFIXES = (".svg", ".png", ".html")
_PAGE = Path(__file__).with_name("page.html")
DOTS = 100.0  # pixels of a scene per inch, the unit of matplotlib's figures
MOST_DOTS = 30_000  # pixels; limits a PNG's width and height


def check_file(path: Path) -> None:
    """Check, before any long work, that a picture could be written to a file of this name.

    :raises PictureError: if the suffix is not .svg, .png or .html, or for .png without matplotlib.
    """
    if path.suffix not in SUFFIXES:
        raise PictureError(f"expecting a file name in {', '.join(SUFFIXES)}, got {str(path)!r}")
    if path.suffix == ".png":
        try:
            import matplotlib  # noqa: F401 -- only to check its presence
        except ImportError as error:
            raise PictureError("PNG: expecting matplotlib; pip install 'topompi[plot]' brings it") from error


def write(scene: Scene, path: Path) -> None:
    """Write a scene in the format of the file's suffix.

    :raises PictureError: as ``check_file``.
    """
    check_file(path)
    if path.suffix == ".png":
        _write_png(scene, path)
    else:
        write_text(path, html(scene) if path.suffix == ".html" else svg(scene))


def svg(scene: Scene) -> str:
    """Write a scene as SVG; tool tips become titles; nodes' numbers and jobs' names become attributes."""
    canvas = Canvas(scene.width, scene.height, scene.title)
    for item in scene.items:
        if isinstance(item, Line):
            _add_line(canvas, item)
        elif isinstance(item, Box):
            edge = {"stroke": item.edge, "stroke_width": 1, "rx": 3} if item.edge else {}
            node = {"class": "node", "data_node": item.node} if item.node >= 0 else _jobs(item)
            place = {"x": item.x, "y": item.y, "width": item.width, "height": item.height}
            canvas.add("rect", _tip(item.tip), **place, fill=item.colour, **edge, **node)
        else:
            weight = {"font_weight": "bold"} if item.bold else {}
            look = {"font_size": item.size, "fill": item.colour, "text_anchor": item.anchor, **weight, **_jobs(item)}
            canvas.add("text", escape(item.words), x=item.x, y=item.y, **look)
    return canvas.svg()


def html(scene: Scene) -> str:
    """Write a scene as an HTML page; the wheel zooms, dragging moves, and pointing at a box shows only its links."""
    page = read_text(_PAGE, SourceError, "a page")
    return page.replace("{{title}}", unmarked(escape(scene.title))).replace("{{picture}}", svg(scene))


def _add_line(canvas: Canvas, line: Line) -> None:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line.points)
    ends = {"class": "link", "data_low": line.ends[0], "data_high": line.ends[1]} if line.ends[0] >= 0 else {}
    look = {"fill": "none", "stroke": line.colour, "stroke_width": line.width}
    canvas.add("path", _tip(line.tip), d=path, **look, **ends, **_jobs(line))


def _jobs(item: Line | Box | Text) -> dict[str, str]:
    return {"data_jobs": item.jobs} if item.jobs else {}


def _tip(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""


def _write_png(scene: Scene, path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    scale = min(1.5, MOST_DOTS / max(scene.width, scene.height))
    figure = Figure(figsize=(scene.width / DOTS, scene.height / DOTS), dpi=DOTS * scale)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.axis("off")
    point = 72 / DOTS  # points per pixel of the scene
    for order, item in enumerate([Text(8, 24, scene.title, 15, bold=True), *scene.items]):
        if isinstance(item, Line):
            x, y = zip(*item.points, strict=True)
            axes.plot(x, y, color=item.colour, linewidth=item.width * point, zorder=order, solid_capstyle="butt")
        elif isinstance(item, Box):
            edge = item.edge or "none"
            shape = Rectangle(
                (item.x, item.y), item.width, item.height, facecolor=item.colour, edgecolor=edge, zorder=order
            )
            axes.add_patch(shape)
        else:
            align = {"start": "left", "middle": "center", "end": "right"}[item.anchor]
            look: dict[str, Any] = {"fontsize": item.size * point, "color": item.colour, "zorder": order}
            look["weight"] = "bold" if item.bold else "normal"
            axes.text(item.x, item.y, item.words, ha=align, va="baseline", **look)
    save_figure(figure, path)
