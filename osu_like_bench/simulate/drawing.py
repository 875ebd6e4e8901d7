"""Times over message sizes as a picture."""

from __future__ import annotations

from pathlib import Path

from topompi.errors import BenchmarkError

from ..options import Options
from ..record import Facts
from .smpi import Failure
from .table import Findings

__all__ = ["draw", "drawable"]

SUFFIXES = (".svg", ".png")


def drawable(path: Path | None) -> None:
    """Raise BenchmarkError for a file that ``draw`` would not write, before the long work."""
    if path is not None and path.suffix not in SUFFIXES:
        raise BenchmarkError(f"--plot: expecting a file name in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        if path is not None:
            import matplotlib  # noqa: F401  whether it is there is all that is asked
    except ImportError as error:
        raise BenchmarkError("--plot: expecting matplotlib, got none; pip install 'topompi[plot]' brings it") from error


def draw(options: Options, facts: Facts, found: Findings, path: Path) -> None:
    """Draw all sides over the message size, log-log: algorithms solid, peers dashed, the bound dotted.

    :param options: of the run.
    :param facts: its circumstances.
    :param found: the times.
    :param path: ends in .svg or .png.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "osu_like_bench simulate"}):  # or each drawing has other identifiers
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot(xlabel="message size (bytes)", ylabel="simulated time (us)")
        for sides, style in ((found.algorithms, "o-"), (found.peers, "s--")):
            for side in sides:
                timed = [(size, found.outcomes[side, size]) for size in found.sizes]
                points = [(size, 1e6 * seconds) for size, seconds in timed if not isinstance(seconds, Failure)]
                if points:
                    axes.plot(*zip(*points, strict=True), style, markersize=4, label=side)
        bounds = [(size, 1e6 * seconds) for size, seconds in found.bounds.items() if seconds]
        if bounds:
            axes.plot(*zip(*bounds, strict=True), "k:", label="lower bound")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(f"{options.benchmark}: {facts.ranks} ranks on {len(set(facts.hosts))} hosts of {facts.topology}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
