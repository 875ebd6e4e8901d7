"""The output of ``topompi jobs``: facts about the workload log and the cluster, and tables of figures by policy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from rich.table import Table

from ...machine.jobs import Cluster, Outcome, Workload
from ...machine.jobs.metrics import figures
from ...machine.jobs.study import Interval
from ..terminal import console

__all__ = ["print_intervals", "print_notes", "print_outcomes", "print_rejections", "print_workload"]

WAITS = {"makespan": "makespan", "mean_wait": "mean wait", "median_wait": "median", "max_wait": "longest"}
PLACES = {"average_hops": "hops", "percent": "share", "partners": "partners"}


def print_workload(workload: Workload, cluster: Cluster) -> None:
    """Print numbers of jobs read and left out, the cluster's nodes, leaves and pods, the log's machine, and notes.

    :param workload: jobs of the log.
    :param cluster: the simulated cluster.
    """
    screen = console()
    dropped = "".join(f"; {count:,} left out: {reason}" for reason, count in workload.reading.dropped.items())
    problems = len(workload.reading.problems)
    wrong = f"; {_count(problems, 'wrong line', 'wrong lines')}" if problems else ""
    screen.print(f"{workload.name}: {_count(len(workload), 'job', 'jobs')}{dropped}{wrong}")
    print_notes(workload, to_error=False)
    told = workload.machine_nodes
    more = f", the log's machine has {told:,}" if told is not None and told != cluster.num_nodes else ""
    shape = f"{_count(cluster.num_leaves, 'leaf', 'leaves')}, {_count(cluster.num_pods, 'pod', 'pods')}"
    slots = f", {_count(cluster.num_slots, 'slot', 'slots')}" if cluster.node_slots is not None else ""
    screen.print(f"{cluster.name}: {_count(cluster.num_nodes, 'node', 'nodes')}{slots}, {shape}{more}")


def print_notes(workload: Workload, *, to_error: bool = True) -> None:
    """Print the reader's notes on how it took a log, a line each.

    :param workload: jobs of the log.
    :param to_error: whether to print to standard error, because standard output has JSON.
    """
    for note in workload.reading.notes:
        console(to_error=to_error).print(note, soft_wrap=True)


def print_outcomes(outcomes: Mapping[str, Outcome]) -> None:
    """Print waits, slowdown, use of the machine and distances under each policy, one policy per line.

    :param outcomes: result of the simulation by the policy's name.
    """
    table = _table("policy", "jobs", "rejected", *WAITS.values(), "slowdown", "in use", *PLACES.values())
    for name, outcome in outcomes.items():
        one = figures(outcome)
        cells = [name, f"{one['jobs']:,}", f"{one['rejected']:,}", *(_time(one[key]) for key in WAITS)]
        cells += [f"{one['bounded_slowdown']:,.2f}", f"{one['utilisation']:.1%}"]
        if "partners" in one:
            cells += [f"{one['average_hops']:.2f}", f"{one['percent']:.1f} %", f"{one['partners']:.2f}"]
        table.add_row(*cells)
    console().print(table)
    for name, outcome in outcomes.items():
        print_rejections(name, outcome.rejections, outcome.workload)


def print_rejections(name: str, rejections: Mapping[str, int], workload: Workload) -> None:
    """Print why a policy rejected jobs, a line per reason.

    :param name: name of the policy.
    :param rejections: number of rejected jobs by reason.
    :param workload: jobs of the log.
    """
    screen = console()
    for reason, count in rejections.items():
        screen.print(f"{name}: {count:,} rejected: {reason}", soft_wrap=True)
    if rejections and workload.slots.any() and np.array_equal(workload.slots, workload.nodes):
        screen.print("sizes are taken as nodes: if the log counts processors, --cores N divides them", soft_wrap=True)


def print_intervals(policies: Mapping[str, Mapping[str, Interval]], parts: int) -> None:
    """Print each figure's mean over parts of a log, with half of its 95 % confidence interval, one policy per line.

    :param policies: for each policy, by its name, the interval of each figure by the figure's name.
    :param parts: number of parts.
    """
    columns = ("wait, min", "makespan, d", "slowdown", "in use, %", "hops", "share, %", "partners")
    table = _table("policy", *columns, "leaf pairs", "pod pairs")
    for name, of in policies.items():
        cells = [_spread(of["mean_wait"], 60), _spread(of["makespan"], 86_400), _spread(of["bounded_slowdown"], 1)]
        cells.append(_spread(of["utilisation"], 0.01))
        cells += [_spread(of[key], 1) for key in (*PLACES, "leaf_pairs", "pod_pairs") if key in of]
        table.add_row(name, *cells)
    screen = console()
    screen.print(table)
    if parts > 1:
        screen.print(f"mean over {parts} parts ± half its interval of 95 %")


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, justify="left" if column == "policy" else "right")
    return table


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _spread(found: Interval, unit: float) -> str:
    mean, half = found.mean / unit, (found.high - found.mean) / unit
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
    return f"{mean:,.{digits}f}" + (f" ± {half:,.{digits}f}" if half == half else "")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.1f} d"
