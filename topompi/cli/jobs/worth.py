"""``topompi jobs worth``: what the jobs of a workload log would pay under each rule if they shared nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from ...inputs.figures import check_plot
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.prices.drawing import draw_worth
from ...machine.colocation.prices.rules import RULES
from ...machine.colocation.prices.worth import Worth, effects_of, worth
from ...machine.colocation.scheduling.allocators import Halves, Matched
from ...machine.colocation.scheduling.halves import on_halves
from ...machine.colocation.scheduling.neighbours import intervals_of
from ...machine.colocation.scheduling.speed import ColocatedSpeed
from ...machine.colocation.scheduling.table import rate_table
from ...machine.colocation.speedups.files import read_speedups
from ...machine.colocation.speedups.matrix import Speedups, draw_speedups
from ...machine.jobs import QUEUES, Cluster, Outcome, Workload, read_workload, simulate
from ..inputs import AsJson, ClusterName, First, Settings, settings_of
from ..quantities import FACTOR, HOSTS, PER_HOST, SEED, SHARE
from ..terminal import console
from .table import print_notes

__all__ = ["worth_command"]

SHARES = ("least", "p5", "p25", "p50", "p75", "p95", "most", "mean")
DRAWN = "drawn:"
POLICIES = ("halves", "matched")


def worth_command(
    log: Annotated[Path, typer.Argument(help="A log: SWF, sacct (-P, --json), or Batsim's JSON, packed or not.")],
    *,
    speedups: Annotated[
        str, typer.Option("--speedups", help="FILE of speed-ups (JSON, or CSV), or drawn:PROGRAMS:SEED.")
    ],
    nodes: Annotated[int | None, HOSTS("--nodes", help="Nodes of the machine; else the log's.")] = None,
    cores: Annotated[
        int | None, PER_HOST("--cores", help="Processors of a node, for the log's sizes; else the log's.")
    ] = None,
    rate: Annotated[float, FACTOR("--rate", help="Service units per core and hour.")] = 1.0,
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", help=f"module:function of a site's factor, beside {', '.join(RULES)}; several."),
    ] = None,
    settings: Settings = None,
    column: Annotated[
        str | None, typer.Option("--program", help="Column of the log with the jobs' programs; else they are drawn.")
    ] = None,
    seed: Annotated[int, SEED("--seed", help="Seed of programs and errors.")] = 0,
    queue: Annotated[str, typer.Option("--queue", help=f"{', '.join(QUEUES)} or module:function.")] = "no-overtaking",
    policy: Annotated[
        str, typer.Option("-p", "--policy", help="halves: beside any neighbour; matched: beside favoured ones.")
    ] = POLICIES[0],
    first: First = None,
    cluster_name: ClusterName = None,
    as_json: AsJson = False,
    drawing: Annotated[
        Path | None, typer.Option("--draw", help="FILE.svg or .png: the distribution of prices, and who costs whom.")
    ] = None,
) -> None:
    """Show what the jobs of a log would pay under each rule if each ran on half of the cores of twice its nodes.

    The speed-ups give the speed of each program beside each other one. Partners change as jobs come and go. The table
    has prices as shares of the price alone, with all others gone, and the factor on the rate with which a rule brings
    in as much as usual, and as much as whole nodes. The setting error is the relative standard deviation of the
    shutter's estimates.
    """
    error = settings_of(settings, {"error": (SHARE, 0.01)}, ColocationError)["error"]
    if drawing is not None:
        check_plot(drawing, "--draw", ColocationError)
    matrix, dropped = _matrix(speedups)
    workload = read_workload(log, cores, cluster=cluster_name)
    print_notes(workload)
    cores = cores or workload.machine_cores
    machine = workload.machine_nodes if nodes is None else nodes
    if machine is None:
        raise ColocationError(f"{log}: expecting --nodes, because the log does not say them, got none")
    chosen = workload.select(np.flatnonzero(workload.run > 0)[:first])
    rows = _programs(chosen, matrix, column, seed)
    ran = _simulated(
        chosen.with_columns(program=np.array(matrix.programs, object)[rows]), matrix, machine, queue, policy
    )
    effects = effects_of(intervals_of(ran, rate_table(matrix)), chosen.nodes, rows)
    found = worth(effects, ran.workload.run, cores, rate / 3600, rule or (), error=error, seed=seed)
    if drawing is not None:
        draw_worth(found, matrix.programs, drawing)
    if as_json:
        print(json.dumps(_facts(found, chosen, matrix, error) | {"left_out": dropped}))
    else:
        _print(found, matrix, dropped)


def _simulated(workload: Workload, matrix: Speedups, machine: int, queue: str, policy: str) -> Outcome:
    """Return the schedule of jobs with programs on the half nodes of a machine."""
    if policy not in POLICIES:
        raise ColocationError(f"--policy: expecting one of {', '.join(POLICIES)}, got {policy!r}")
    if (most := int(workload.nodes.max(initial=0))) > machine:
        raise ColocationError(f"nodes: expecting at most the machine's {machine}, got {most}")
    table = rate_table(matrix)
    jobs = on_halves(workload, matrix.programs, stretch=1 / table.slowest)
    cluster = Cluster.regular(machine, machine).with_slots(2)
    allocator = Matched(table) if policy == "matched" else Halves()
    return simulate(jobs, cluster, queue, allocator, ColocatedSpeed(table))


def _matrix(text: str) -> tuple[Speedups, list[str]]:
    """Return the speed-ups of programs that are known beside each other, and the names of the others."""
    if text.startswith(DRAWN):
        count, _, seed = text.removeprefix(DRAWN).partition(":")
        if not (count.isascii() and count.isdigit() and (seed or "0").isascii() and (seed or "0").isdigit()):
            raise ColocationError(f"--speedups: expecting {DRAWN}PROGRAMS:SEED, got {text!r}")
        return draw_speedups(int(count), int(seed or 0)), []
    whole = read_speedups(text)
    part = whole.complete()
    if not len(part):
        raise ColocationError(f"{text}: expecting programs that are known beside each other, got none")
    return part, [name for name in whole.programs if name not in part.number]


def _programs(workload: Workload, matrix: Speedups, column: str | None, seed: int) -> NDArray[np.int64]:
    """Return the row of each job's program: from a column of the log, or drawn."""
    if column is None:
        return np.random.default_rng((seed, 1)).integers(len(matrix), size=len(workload))
    names = [str(name) for name in workload[column].tolist()]
    unknown = sorted(set(names) - set(matrix.programs))
    if unknown:
        raise ColocationError(f"{column}: expecting one of {', '.join(matrix.programs)}, got {unknown[0]!r}")
    return np.array([matrix.number[name] for name in names], np.int64)


def _facts(found: Worth, workload: Workload, matrix: Speedups, error: float) -> dict[str, object]:
    effects = found.effects
    columns = {
        "job": workload.number, "program": np.array(matrix.programs)[effects.program], "nodes": effects.size,
        "solo_seconds": effects.solo, "seconds": effects.shared, "performance": effects.performance,
        "lost_node_seconds": effects.lost, "caused_node_seconds": effects.caused,
        "alone": found.alone, "own_nodes": found.own, **found.prices,
    }  # fmt: skip
    jobs = [
        dict(zip(columns, row, strict=True)) for row in zip(*(one.tolist() for one in columns.values()), strict=True)
    ]
    sums = {"alone": float(found.alone.sum()), "own_nodes": float(found.own.sum())}
    more = {"shared_time": _shared(found), "error": error}
    return {"rules": found.summary(), **sums, **more, "programs": found.programs(matrix.programs), "jobs": jobs}


def _shared(found: Worth) -> float:
    """Share of the jobs' node time in which another job ran beside them."""
    effects = found.effects
    whole = float((effects.shared * effects.size).sum())
    return float((effects.beside * effects.size).sum()) / whole if whole else 0.0


def _print(found: Worth, matrix: Speedups, dropped: list[str]) -> None:
    screen, effects = console(), found.effects
    screen.print(
        f"{len(effects.shared):,} jobs, {_shared(found):.0%} of their node time beside another; nodes of their own "
        f"would cost {found.own.sum():,.0f}, the work alone on half nodes {found.alone.sum():,.0f}",
        markup=False,
    )
    table = Table(box=None, header_style="bold", title="price / price alone", title_justify="left")
    for name in ("rule", "sum", "for as usual", "for own nodes", *SHARES):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for row in found.summary():
        factors = (f"x {row[word]:.3f}" for word in ("factor_as_usual", "factor_own_nodes"))
        table.add_row(row["rule"], f"{row['sum']:,.0f}", *factors, *(f"{row[word]:.3f}" for word in SHARES))
    screen.print(table)
    programs = Table(box=None, header_style="bold")
    for name in ("program", "jobs", "loses", "costs others", *found.prices, ""):
        programs.add_column(name, justify="left" if name in ("program", "") else "right")
    for row in found.programs(matrix.programs):
        shares = (f"{row[rule]:.3f}" for rule in found.prices)
        effect = (f"{100 * row[word]:.1f} %" for word in ("suffers", "costs"))
        programs.add_row(row["program"], f"{row['jobs']:,}", *effect, *shares, row["kind"])
    screen.print(programs)
    if dropped:
        screen.print(f"left out, because speed-ups beside others are unknown: {', '.join(dropped)}", markup=False)
