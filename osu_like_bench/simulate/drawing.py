"""Pictures of simulated times over message sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError
from topompi.inputs.figures import save_figure

from ..options import Options
from ..record import Facts
from .smpi import Failure
from .table import Findings

__all__ = ["draw", "drawable", "heights"]

SUFFIXES = (".svg", ".png")


def drawable(path: Path | None) -> None:
    """Raise BenchmarkError for a file that ``draw`` would not write, before the long work."""
    if path is not None and path.suffix not in SUFFIXES:
        raise BenchmarkError(f"--plot: expecting a file name in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        if path is not None:
            import matplotlib  # noqa: F401  only its presence is checked
    except ImportError as error:
        raise BenchmarkError("--plot: expecting matplotlib, got none; pip install 'topompi[plot]' brings it") from error


def draw(options: Options, facts: Facts, found: Findings, path: Path) -> None:
    """Draw the times of all sides over the message size, as multiples of the lower bound, if it is known.

    topompi's algorithms have solid lines, other libraries (peers) dashed lines. A line has a gap at a size for which
    the side has no time.

    :param options: options of the run.
    :param facts: circumstances of the run.
    :param found: the times.
    :param path: path of the file, which ends in .svg or .png.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "osu_like_bench simulate"}):  # a fixed salt, for equal files
        bounded = all(found.bounds[size] for size in found.sizes)
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot(xlabel="message size (bytes)")
        axes.set_ylabel("simulated time / bound" if bounded else "simulated time (us)")
        for sides, style in ((found.algorithms, "o-"), (found.peers, "s--")):
            for side in sides:
                times = heights(found, side)
                if not np.isnan(times).all():
                    axes.plot(found.sizes, times, style, markersize=4, label=side)
        if bounded:
            axes.axhline(1, color="k", linestyle=":", label="lower bound")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(f"{options.benchmark}: {facts.ranks} ranks on {len(set(facts.hosts))} hosts of {facts.topology}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        save_figure(figure, path)


def heights(found: Findings, side: str) -> NDArray[np.float64]:
    """Return the drawn values of a side, shape (sizes,): multiples of the bound, or microseconds if no bound is known.

    A size without a time has NaN.
    """
    outcomes = [found.outcomes[side, size] for size in found.sizes]
    seconds = np.array([np.nan if isinstance(one, Failure) else one for one in outcomes])
    bounds = np.array([found.bounds[size] for size in found.sizes])
    return seconds / bounds if bounds.all() else 1e6 * seconds
