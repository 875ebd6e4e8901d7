"""The page of the results: tables, and the conditions of their measurement, from the file of results alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..tables import table_lines
from .analysis import figures, interference_of, interval, spread

__all__ = ["lines"]

Cells = Mapping[str, Any]
NAMES = {
    "slurm": "Slurm alone, `topology/tree`, backfill",
    "isolated": "bridge, `isolated`",
    "disjoint": "bridge, `disjoint`",
    "select": "users: `topompi slurm select`",
}
# Columns of the throughput: key of `figures`, heading, format.
COLUMNS = (
    ("makespan", "makespan, s", "{:.1f}"),
    ("cumulative", "cumulative time, s", "{:,.0f}"),
    ("mean wait", "mean wait, s", "{:.1f}"),
    ("median wait", "median wait, s", "{:.1f}"),
    ("utilisation", "utilisation", "{:.3f}"),
    ("talking pairs", "pairs of communicating jobs that shared links", "{:.0f}"),
    ("pairs", "all pairs that shared links", "{:.0f}"),
)
INTRODUCTION = """\
# Slurm: jobs that communicate

H. Subramoni, *Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems*, 2013,
chapter 8, on a real Slurm, unmodified, over an emulated network: topompi chooses nodes without shared links, and places
tasks by their communication.
"""


def lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page's lines; a part without results has no section.

    :param data: content of the file of results.
    """
    cells = {name: cell["result"] for name, cell in data["cells"].items()}
    yield INTRODUCTION
    yield from _conditions(data)
    if "alone" in cells:
        yield from _throughput(data["plan"], cells)
        yield from _alone(cells["alone"])
    yield from _stencil(cells)
    yield from _alltoall(cells)
    yield from _latency(cells)


def _conditions(data: Mapping[str, Any]) -> Iterator[str]:
    machine, plan = data["machine"], data["plan"]
    loads = [cell["load"] for cell in data["cells"].values()]
    busiest = f"; load average after a cell at most {max(loads):.1f}" if loads else ""
    yield (
        f"Conditions: {machine['processor']}, {machine['processors']} processors, {machine['system']}, "
        f"{machine['day']}; network {plan['spec']} (leaf switches x hosts), {plan['rate']}bit/s at hosts, "
        f"{plan['uplinks']}bit/s above leaf switches, if a table names no other; one MPI rank per node, by Open MPI's "
        f"mpirun{busiest}."
    )
    yield (
        "The processors stand for all nodes: computation is a sleep, and links are so slow that they, and not the "
        "processors, bound what communicates."
    )
    yield ""


def _runs(cells: Cells, policy: str) -> dict[int, Any]:
    """Return the runs of a policy by their repetition, in order."""
    names = (name for name in cells if name.startswith(f"throughput/{policy}/"))
    return {at: cells[f"throughput/{policy}/{at}"] for at in sorted(int(name.rpartition("/")[2]) for name in names)}


def _throughput(plan: Mapping[str, Any], cells: Cells) -> Iterator[str]:
    """Yield the table of the policies, median and range of the repetitions."""
    alone = {name: one["seconds"] for name, one in cells["alone"].items()}
    leaves, _, hosts = plan["spec"].partition("x")
    nodes = int(leaves) * int(hosts)
    rows, idle = [], []
    base = {at: figures(run, alone, nodes) for at, run in _runs(cells, "slurm").items()}
    for policy, name in NAMES.items():
        runs = _runs(cells, policy)
        if not runs:
            continue
        found = {at: figures(run, alone, nodes) for at, run in runs.items()}
        mean, low, high = interval(interference_of([*runs.values()], alone) or [1.0])
        worst = max(one["worst interference"] for one in found.values())
        idle += [run["idle"] for run in runs.values() if run["idle"] is not None]
        row = [name, *(spread([one[key] for one in found.values()], form) for key, _, form in COLUMNS)]
        rows.append([*row, f"{mean:.3f} ({low:.3f} to {high:.3f})", f"{worst:.2f}", _change(found, base)])
    if not rows:
        return
    repetitions = max(len(_runs(cells, policy)) for policy in NAMES)
    yield from ("## Throughput", "")
    head = ["nodes chosen by", *(title for _, title, _ in COLUMNS), "interference, mean", "worst", "throughput, %"]
    yield from table_lines(head, rows)
    yield ""
    yield (
        f"A list of {plan['jobs']} jobs (seed {plan['seed']}), submitted at a mean gap of {plan['gap']:g} s; median "
        f"and range of {repetitions} repetitions. A job's interference is the time of its rounds over the time of the "
        "same rounds on the empty cluster; its mean over all jobs that communicate has an interval of 95 % (bootstrap "
        "over jobs). Throughput is the cumulative time (waits and runs) of Slurm alone over the policy's in the same "
        "repetition, less 1: the source saw 8 %. Pairs: `isolation.check` on Slurm's file of completed jobs at every "
        "second; compute jobs hold links, too, which they do not use."
    )
    ways = [run["ways"] for run in _runs(cells, "select").values()]
    if ways:
        told = (", ".join(f"{count} {way}" for way, count in sorted(one.items())) for one in ways)
        yield (
            "Users wait up to 3 s for enough idle nodes, choose among them one at a time, and drop the list if the job "
            f"does not start (`studies/slurm/submit.sh`). Their submissions: {'; '.join(told)}."
        )
    if idle:
        yield f"Processors were idle for {min(idle):.0%} to {max(idle):.0%} of the time in which data flowed."
    yield ""


def _change(found: Mapping[int, Mapping[str, float]], base: Mapping[int, Mapping[str, float]]) -> str:
    """Return how much faster each repetition was than Slurm alone in the same one, in per cent, as text."""
    both = [100 * (base[at]["cumulative"] / one["cumulative"] - 1) for at, one in found.items() if at in base]
    return spread(both, "{:+.1f}") if both else "-"


def _alone(alone: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of the jobs on the empty cluster, beside the time that the rates allow."""
    rows = [
        (
            name,
            f"{one['predicted']:.2f}",
            f"{one['seconds']:.2f}",
            f"{one['seconds'] / one['predicted']:.3f}",
            f"{one['whole']:.2f}",
            "-" if one["idle"] is None else f"{one['idle']:.0%}",
            f"{one['busiest']:.0%}",
        )
        for name, one in alone.items()
    ]
    yield from ("Each kind and number of nodes alone, on successive nodes from the first of a leaf switch on:", "")
    head = ["job", "by the rates, s", "measured, s", "ratio", "with its start, s", "processors idle", "busiest link"]
    yield from table_lines(head, rows)
    yield ""


def _stencil(cells: Cells) -> Iterator[str]:
    runs = [cell for name, cell in cells.items() if name.startswith("stencil/")]
    if not runs:
        return
    base = [run["random"]["seconds"] for run in runs]
    rows = []
    for order in runs[0]:
        seconds = [run[order]["seconds"] for run in runs]
        saved = [1 - mine / theirs for mine, theirs in zip(seconds, base, strict=True)]
        inside = spread([100 * run[order]["inside"] for run in runs])
        rows.append((order, inside, spread(seconds, "{:.2f}"), spread([100 * one for one in saved])))
    yield from ("## Tasks placed by their communication", "")
    yield from table_lines(["order of the tasks", "bytes inside nodes, %", "time of the halo, s", "saved, %"], rows)
    yield ""
    yield (
        f"A periodic stencil in two dimensions, 32 tasks on 8 nodes with 4 slots each; another random "
        f"order in each of {len(runs)} repetitions, median and range. The order *placed* is that of `topompi slurm "
        "place`. The source reports 40 % for a stencil in three dimensions."
    )
    yield ""


def _alltoall(cells: Cells) -> Iterator[str]:
    titles = {
        "cables": "6 of 16 nodes; two nodes on each leaf switch share one cable of a node's rate (2:1)",
        "trunks": "8 of 16 nodes; four nodes on each leaf switch share a trunk of twice a node's rate (2:1)",
    }
    rows = []
    for kind, title in titles.items():
        runs = [cell for name, cell in cells.items() if name.startswith(f"alltoall/{kind}/")]
        if not runs:
            continue
        base = next(iter(sorted(runs[0], key=["select", "two on a leaf switch"].__contains__, reverse=True)))
        for choice in sorted(runs[0], key=lambda name: (name != base, name)):
            seconds = [run[choice]["seconds"] for run in runs]
            slower = [100 * (run[choice]["seconds"] / run[base]["seconds"] - 1) for run in runs]
            row = [title, choice, f"`{runs[0][choice]['nodes']}`", f"{runs[0][choice]['predicted']:.2f}"]
            rows.append([*row, spread(seconds, "{:.2f}"), spread(slower)])
    if not rows:
        return
    yield from ("## Nodes with and without shared links", "")
    yield from table_lines(["network", "choice", "nodes", "by the rates, s", "measured, s", "slower, %"], rows)
    yield ""
    yield (
        "An alltoall alone on the cluster; median and range. The source reports a penalty of 15 to 21 % for shared "
        "links, and a gain of 6 % for alltoallv by its node selection."
    )
    yield ""


def _latency(cells: Cells) -> Iterator[str]:
    runs = {name.partition("/")[2]: cell for name, cell in cells.items() if name.startswith("latency/")}
    costs = runs.pop("costs", None)
    if runs:
        rows = [
            (name.replace("bridge ", "bridge, `--every ") + "`" * name.startswith("bridge"), *_quartiles(values))
            for name, values in runs.items()
        ]
        yield from ("## Start of a job", "")
        head = ["nodes chosen by", "median, s", "quartiles, s", "least and greatest, s"]
        yield from table_lines(head, rows)
        yield ""
        count = len(next(iter(runs.values())))
        yield f"From `sbatch` to the first line of the script, a job of one node on an idle cluster, {count} each."
        yield ""
    if costs:
        number, first = costs["jobs in the first pass"], costs["seconds of the first pass"]
        yield (
            f"The bridge at 16 nodes (`disjoint`): a pass that placed {number:.0f} jobs took {1000 * first:.0f} ms, "
            f"with reading and telling ({number / first:.0f} decisions/s); median of its passes "
            f"{1000 * costs['seconds of a pass, median']:.0f} ms; memory (resident) {costs['memory, MB']:.0f} MB."
        )
        yield ""


def _quartiles(values: Sequence[float]) -> tuple[str, str, str]:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f}", f"{low:.2f}-{high:.2f}", f"{min(values):.2f}-{max(values):.2f}"
