"""Pictures of the load of links over time, under flows and under packets.

    python -m benchmarks.link_loads -o docs/figures

Alltoalls of 64 KiB on the first 64 hosts of ``XGFT(2; 20,16; 1,16)``, one rank each, preset ``fdr``, seed 0: the mean
load of the links between switches and of those into hosts, and the busiest link of each kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from topompi.inputs.figures import SERIES, save_figure
from topompi.netsim import Program, Result, Tables, link_bytes_at
from topompi.netsim import run as flows
from topompi.netsim.packets import run as packets

from .packets import CASES, FDR

SCHEDULES = ("at_once", "shift")
INTERVALS = 16


def loads(tables: Tables, program: Program, model: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals in seconds, and each link's share of its rate in them, shape (intervals, links)."""

    def run(jobs: Sequence[Program]) -> Result:
        if model == "flows":
            return flows(tables, jobs, hosts=FDR.hosts)
        return packets(tables, jobs, hosts=FDR.hosts, settings=FDR.settings)

    ends = np.linspace(0, float(run([program]).job_seconds[0]), INTERVALS + 1)[1:]
    carried = np.diff(link_bytes_at(run, [program], ends.tolist()), axis=0, prepend=0.0)
    return ends, carried / (ends[0] * tables.rate)


def kinds(tables: Tables) -> dict[str, NDArray[np.bool_]]:
    """Return the links by the kind of their target."""
    of_host, to_host = tables.source < tables.num_hosts, tables.target < tables.num_hosts
    return {"between switches": ~of_host & ~to_host, "into hosts": to_host}


def draw(folder: Path) -> None:
    """Draw one row per schedule and one column per model."""
    network, tables = CASES["small"].job(0)
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots(len(SCHEDULES), 2, sharex=True, sharey=True)
    for row, schedule in zip(axes, SCHEDULES, strict=True):
        program = CASES["small"].program(schedule, network)
        for axis, model in zip(row, ("flows", "packets"), strict=True):
            ends, load = loads(tables, program, model)
            for (name, links), colour in zip(kinds(tables).items(), SERIES, strict=False):
                used = links & (load.sum(axis=0) > 0)
                for of, style in (("mean", "-"), ("busiest", ":")):
                    values = getattr(load[:, used], "mean" if of == "mean" else "max")(axis=1)
                    values = np.append(values[:1], values)  # the first interval begins at 0
                    axis.step(
                        np.append(0, ends) * 1e3, values, colour, linestyle=style, where="pre", label=f"{name}, {of}"
                    )
            axis.set_title(f"{schedule.replace('_', ' ')}, {model}: {ends[-1] * 1e3:.2f} ms", fontsize=10)
            axis.set_ylim(0, 1.05)
            axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle("Load of links in an alltoall of 64K among 64 hosts", fontsize=12)
    for axis in axes[-1]:
        axis.set(xlabel="milliseconds", xlim=(0, None))
    figure.supylabel("share of the rate that links carry", fontsize=10)
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "topompi link loads"}):  # a fixed salt, for equal files
        save_figure(figure, folder / "link-loads.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/figures"))
    draw(parser.parse_args().output)


if __name__ == "__main__":
    main()
