"""``topompi jobs``: workload logs on a cluster, policies side by side, nodes for one job, and who shares links."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..jobs import ALLOCATORS, Backfill, Cluster, JobsError, Outcome, Workload, read_workload, simulate
from ..jobs.drawing import check_plot, draw, draw_comparison
from ..jobs.exports import to_json, write_jobs, write_schedule
from ..jobs.metrics import average_hops, fragmentation, sharing, summarise
from .jobscluster import machine_of
from .jobsnow import allocate, check_command
from .terminal import console

__all__ = ["app"]

app = typer.Typer(help="Many jobs on one machine: queues, allocation of nodes, isolation.", no_args_is_help=True)

Log = Annotated[Path, typer.Argument(help="A log: SWF, sacct -P, or Batsim's JSON, packed or not.")]
ClusterSpec = Annotated[
    str, typer.Option("--cluster", help="leaves=18x18 (nodes a leaf, leaves a pod), or a topology source.")
]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Nodes of leaves=...; else the log's.", min=1)]
Lfts = Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables of the topology source.")]
Cores = Annotated[int, typer.Option("--cores", help="Processors of one node, for the log's sizes.", min=1)]
Depth = Annotated[str, typer.Option("--depth", help="Reservations: 0, 1 (EASY), a number, or all (conservative).")]
OrderName = Annotated[str, typer.Option("--order", help="fcfs, sjf, saf, xf or multifactor.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first jobs.", min=1)]
Partial = Annotated[bool, typer.Option("--partial", help="Go on after lines that are wrong, and count them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="FILE.svg or FILE.png.")]


@app.command("simulate")
def simulate_command(
    log: Log,
    cluster: ClusterSpec,
    nodes: Nodes = None,
    lfts: Lfts = None,
    cores: Cores = 1,
    policy: Annotated[str, typer.Option("--policy", "-p", help=f"One of {', '.join(ALLOCATORS)}.")] = "first",
    depth: Depth = "1",
    order: OrderName = "fcfs",
    speed: Annotated[
        str, typer.Option("--speed", help="as-logged, faster:10, V1:SEED, V2:SEED or shared:5.")
    ] = "as-logged",
    limit: Limit = None,
    partial: Partial = False,
    as_json: AsJson = False,
    plot: Plot = None,
    jobs_csv: Annotated[Path | None, typer.Option("--jobs-csv", help="One line a job, as evalys reads.")] = None,
    schedule_csv: Annotated[Path | None, typer.Option("--schedule-csv", help="One line, as Batsim writes.")] = None,
) -> None:
    """Run a log under one policy: when each job starts, and what that is worth."""
    workload, machine = _inputs(log, cluster, nodes, lfts, cores, limit, partial, plot)
    with _progress(policy, len(workload)) as progress:
        outcome = simulate(workload, machine, _queue(depth, order), policy, speed, progress=progress)
    if plot is not None:
        draw(outcome, plot)
    if jobs_csv is not None:
        write_jobs(outcome, jobs_csv)
    if schedule_csv is not None:
        write_schedule(outcome, schedule_csv)
    if as_json:
        print(to_json(outcome))
        return
    _print_workload(workload, machine)
    _print_table({policy: outcome})


@app.command()
def compare(
    log: Log,
    cluster: ClusterSpec,
    nodes: Nodes = None,
    lfts: Lfts = None,
    cores: Cores = 1,
    policies: Annotated[
        str,
        typer.Option("--policies", "-p", help="ALLOCATOR[@SPEED], several with commas; blocks-ab is without a and b."),
    ] = "first,contiguous,bestfit,exclusive,blocks,isolated",
    depth: Depth = "1",
    order: OrderName = "fcfs",
    limit: Limit = None,
    partial: Partial = False,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Run a log under several policies, and set waits, use and sharing side by side."""
    workload, machine = _inputs(log, cluster, nodes, lfts, cores, limit, partial, plot)
    outcomes: dict[str, Outcome] = {}
    for name in policies.split(","):
        policy, _, speed = name.partition("@")
        with _progress(name, len(workload)) as progress:
            outcomes[name] = simulate(
                workload, machine, _queue(depth, order), policy, speed or "as-logged", progress=progress
            )
    if plot is not None:
        draw_comparison(outcomes, plot)
    if as_json:
        print(json.dumps({name: figures(outcome) for name, outcome in outcomes.items()}))
        return
    _print_workload(workload, machine)
    _print_table(outcomes)


app.command()(allocate)
app.command("check")(check_command)


def figures(outcome: Outcome) -> dict[str, Any]:
    """The summary of an outcome, and where nodes are known its packing and sharing."""
    found = asdict(summarise(outcome))
    if outcome.has_nodes:
        shared = sharing(outcome)
        hops = average_hops(outcome)[outcome.ran]
        found |= {"average_hops": float(hops.mean()), "fragmentation": fragmentation(outcome), **asdict(shared)}
    return found


def _inputs(
    log: Path,
    cluster: str,
    nodes: int | None,
    lfts: Path | None,
    cores: int,
    limit: int | None,
    partial: bool,
    plot: Path | None,
) -> tuple[Workload, Cluster]:
    if plot is not None:
        check_plot(plot)
    with console(to_error=True).status(f"reading {log}"):
        workload = read_workload(log, cores, partial)
        machine = machine_of(cluster, workload.machine_nodes if nodes is None else nodes, lfts)
    return (workload if limit is None else workload.select(slice(limit))), machine


def _queue(depth: str, order: str) -> Backfill:
    if depth == "all":
        return Backfill(None, order)
    if not depth.isascii() or not depth.isdigit():
        raise JobsError(f"--depth: expecting a number or all, got {depth!r}")
    return Backfill(int(depth), order)


@contextmanager
def _progress(name: str, jobs: int) -> Iterator[Callable[[int], None]]:
    with console(to_error=True).status(name) as status:
        yield lambda ended: status.update(f"{name}: {ended:,} of {jobs:,} jobs")


def _print_workload(workload: Workload, cluster: Cluster) -> None:
    screen = console()
    dropped = "".join(f"; {count:,} left out: {reason}" for reason, count in workload.reading.dropped.items())
    wrong = f"; {len(workload.reading.problems):,} wrong lines" if workload.reading.problems else ""
    screen.print(f"{workload.name}: {len(workload):,} jobs{dropped}{wrong}", highlight=False)
    told = workload.machine_nodes
    more = f", the log's machine has {told:,}" if told is not None and told != cluster.num_nodes else ""
    shape = f"{cluster.num_leaves:,} leaves, {cluster.num_pods:,} pods"
    screen.print(f"{cluster.name}: {cluster.num_nodes:,} nodes, {shape}{more}", highlight=False)


def _print_table(outcomes: dict[str, Outcome]) -> None:
    table = Table(box=None, header_style="bold")
    columns = ("policy", "jobs", "rejected", "makespan", "mean wait", "median", "longest", "slowdown", "in use")
    for column in (*columns, "hops", "share", "partners"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name, outcome in outcomes.items():
        one = figures(outcome)
        cells = [
            name,
            f"{one['jobs']:,}",
            f"{one['rejected']:,}",
            *(_time(one[key]) for key in ("makespan", "mean_wait", "median_wait", "max_wait")),
        ]
        cells += [f"{one['bounded_slowdown']:,.2f}", f"{one['utilisation']:.1%}"]
        if "partners" in one:
            cells += [f"{one['average_hops']:.2f}", f"{one['percent']:.1f} %", f"{one['partners']:.2f}"]
        table.add_row(*cells)
    console().print(table)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 172_800 else f"{seconds / 86_400:,.1f} d"
