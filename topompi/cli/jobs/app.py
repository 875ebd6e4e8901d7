"""``topompi jobs``: simulation of workload logs, comparison of policies, nodes for one job, jobs that share links."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...machine.jobs import (
    ALLOCATORS,
    QUEUES,
    Backfill,
    Cluster,
    IsolationCheck,
    JobsError,
    Outcome,
    Queue,
    Workload,
    find_queue,
    read_workload,
    simulate,
)
from ...machine.jobs.drawing import check_plot, draw, draw_comparison
from ...machine.jobs.exports import to_json, write_jobs
from ...machine.jobs.metrics import figures
from ...machine.jobs.study import SCENARIOS, Interval, break_even, interval, replay
from ...machine.jobs.workload.workload import larger, segments
from ...views.cluster import read_cluster
from ..app import with_late
from ..inputs import (
    Adapters,
    AsJson,
    ClusterName,
    First,
    Lfts,
    Settings,
    grouped,
    list_findings,
    reporting,
    settings_of,
    topology,
)
from ..quantities import COUNT, HOSTS, PER_HOST
from ..terminal import console
from .allocate import allocate
from .check import check_command
from .table import print_intervals, print_notes, print_outcomes, print_rejections, print_workload

__all__ = ["app"]

LATE = {  # imported when they are asked for, because they bring the simulators and the levels of fabrics
    "characterise": "jobs.characterise:characterise_command",
    "lanes": "jobs.lanes:lanes_command",
    "price": "jobs.price:price_command",
    "replay": "jobs.replay:replay_command",
    "worth": "jobs.worth:worth_command",
}
WITH_FILE = ("matched", "isolated-matched")  # allocators that take the file of speed-ups
_POLICY = f"{', '.join(ALLOCATORS)} or module:function, each with @SPEED or without; several with commas."
_QUEUE = f"{', '.join(QUEUES)}, module:function, or DEPTH[:ORDER]: 4:sjf; see docs/jobs.md."
ABOUT = "Many jobs on one machine: queues, allocation of nodes, isolation."
app = typer.Typer(cls=with_late(LATE), help=ABOUT, no_args_is_help=True, add_completion=False)


@dataclass(frozen=True)
class LogOnCluster:
    """Options that name a workload log, and describe the cluster on which its jobs run.

    :param log: path of the log.
    :param source: specification of a cluster (``leaves=18x18``), or a topology source.
    :param nodes: number of nodes of a specified cluster; None for that of the log's machine.
    :param lfts: path of the forwarding tables of a source; None if they are in the source.
    :param cores: number of processors of a node, by which sizes in the log become nodes; None for ``slots``, or else
        the number that the log's header says.
    :param slots: number of slots of each node; None for one.
    :param share: whether jobs may share nodes if the log does not say which may.
    :param coschedule: path of a file of speed-ups, by which jobs run on half nodes; None for whole nodes.
    """

    log: Annotated[Path, typer.Argument(help="A log: SWF, sacct (-P, --json), or Batsim's JSON, packed or not.")]
    source: Annotated[str, topology("leaves=18x18 (nodes a leaf, leaves a pod), or a topology source.")]
    nodes: Annotated[int | None, HOSTS("--nodes", help="Nodes of leaves=...; else the log's.")] = None
    lfts: Lfts = None
    cores: Annotated[
        int | None,
        PER_HOST("--cores", help="Processors of one node, for the log's sizes; else --slots, else the log's."),
    ] = None
    slots: Annotated[int | None, PER_HOST("--slots", help="Slots of each node; else one.")] = None
    share: Annotated[bool, typer.Option("--share", help="All jobs may share nodes, unless the log says which.")] = False
    coschedule: Annotated[
        Path | None,
        typer.Option("--speedups", help="Speed-ups of programs beside each other: jobs run on half nodes by them."),
    ] = None

    def policy(self, name: str) -> str:
        """Return the full name of an allocator, to which the file of speed-ups belongs if it takes one."""
        return name if name not in WITH_FILE or self.coschedule is None else f"{name}:{self.coschedule}"

    def speed(self, name: str) -> str:
        """Return the full name of a model of run times; if there is a file, that of half nodes, too."""
        if self.coschedule is not None and name in ("as-logged", "colocated"):
            name = f"colocated:{self.coschedule}"
        elif self.coschedule is not None:
            name = f"{name}&colocated:{self.coschedule}"
        return name

    def prepare(self, workload: Workload, machine: Cluster) -> tuple[Workload, Cluster]:
        """Return the jobs and the cluster with slots, programs and shared nodes as the options say."""
        if self.coschedule is not None:
            if self.slots not in (None, 2):
                raise JobsError(f"--speedups: expecting --slots 2, because nodes have two halves, got {self.slots}")
            from ...machine.colocation.scheduling.registered import (
                jobs_for,  # imported here, because few commands need it
            )

            return jobs_for(str(self.coschedule), workload), machine.with_slots(2)
        machine = machine if self.slots is None else machine.with_slots(self.slots)
        if self.share and "shared" not in workload.columns:
            workload = workload.with_columns(shared=[True] * len(workload))
        return workload, machine


@dataclass(frozen=True)
class Lines:
    """Options that choose jobs of a log, and define how its lines are read.

    :param first: number of jobs, counted from the first, that are taken; None for all.
    :param partial: whether wrong lines are skipped and counted; else they are errors.
    :param columns: names of the fields of sacct's lines, with commas; None if the log has them.
    :param arrivals: whether jobs that wait, run or were cancelled are taken, too, with their time limit as run time.
    :param cluster_name: name of the cluster whose jobs are taken from sacct's log; None if it is of one cluster.
    """

    first: First = None
    partial: Annotated[bool, typer.Option("--partial", help="Go on after lines that are wrong, and count them.")] = (
        False
    )
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="JobID,Submit,...: the fields of sacct's lines, if the log has no names."),
    ] = None
    arrivals: Annotated[
        bool,
        typer.Option("--arrivals", help="Jobs that wait, run or were cancelled arrive, too, for their time limit."),
    ] = False
    cluster_name: ClusterName = None


def make_queue(text: str) -> Queue:
    """Make the queue that a value of ``--queue`` names.

    :param text: name of a queue, ``module:function``, or DEPTH[:ORDER]: the number of waiting jobs with a reservation,
        or ``all``, and the order of waiting jobs, a name or ``module:function``.
    :raises JobsError: if a name is unknown.
    """
    depth, _, order = text.partition(":")
    if depth == "all":
        return Backfill(None, order or "fcfs")
    if re.fullmatch("[0-9]{1,9}", depth):
        return Backfill(int(depth), order or "fcfs")
    return find_queue(text)


@dataclass(frozen=True)
class Output:
    """Options that define what is printed, drawn and written.

    :param as_json: whether to print JSON.
    :param drawing: path of a picture; None for none.
    :param csv: path of a file with one line a job; None for none.
    :param check: whether to look after each start which running jobs share links.
    """

    as_json: AsJson = False
    drawing: Annotated[Path | None, typer.Option("--draw", help="FILE.svg or FILE.png.")] = None
    csv: Annotated[Path | None, typer.Option("--output", "-o", help="FILE.csv: a line a job, as evalys reads.")] = None
    check: Annotated[
        bool, typer.Option("--check", help="Look after each start which running jobs share links; exit code 1 if some.")
    ] = False


@app.command("simulate")
@grouped
def simulate_command(
    given: LogOnCluster,
    *,
    policies: Annotated[str, typer.Option("--policy", "-p", help=_POLICY)] = "first",
    scenario: Annotated[
        str | None, typer.Option("--scenario", help=f"Policies of a study: {' or '.join(SCENARIOS)}.")
    ] = None,
    parts: Annotated[int, COUNT("--segments", help="Replay so many parts of the log; gives intervals.")] = 1,
    queue: Annotated[str, typer.Option("--queue", help=_QUEUE)] = "easy",
    settings: Settings = None,
    adapters: Adapters,
    lines: Lines,
    output: Output,
) -> None:
    """Run a log under one policy, or several side by side; show waits, use of the machine and sharing of links.

    A policy is ALLOCATOR or ALLOCATOR@SPEED, with the allocators first, contiguous, bestfit, exclusive, blocks,
    isolated, ... or module:function, and the speeds as-logged, faster:10, V1:SEED, V2:SEED, shared:5, links or
    module:function; halves and matched need --speedups; blocks-ab is without a and b. --set larger=NUMBER
    multiplies the nodes of every job.
    """
    chosen = _policies(policies, scenario, given)
    times = settings_of(settings, {"larger": (COUNT, 1)}, JobsError)["larger"]
    if output.drawing is not None:
        check_plot(output.drawing)
    in_parts = scenario is not None or parts > 1
    if output.drawing is not None and in_parts:
        raise JobsError("--draw: expecting neither --scenario nor --segments, got one of them")
    if (output.csv is not None or output.check) and (in_parts or len(chosen) > 1):
        raise JobsError("expecting one policy, without --scenario and --segments, beside --output and --check")
    workload, machine = _inputs(given, adapters, lines)
    workload, discipline = larger(workload, times) if times > 1 else workload, make_queue(queue)
    if in_parts:
        _compare_parts(workload, machine, discipline, chosen, parts, scenario, output.as_json)
        return
    watch, outcomes = IsolationCheck(), dict[str, Outcome]()
    for name, (policy, speed) in chosen.items():
        with _progress(name, len(workload)) as progress:
            observers = [watch] if output.check else []
            outcomes[name] = simulate(workload, machine, discipline, policy, speed, observers, progress=progress)
    _give(outcomes, machine, output)
    if output.check:
        _tell_check(watch, output.as_json)


def _give(outcomes: dict[str, Outcome], machine: Cluster, output: Output) -> None:
    """Draw, write and print the outcome of each policy, by its name."""
    first = next(iter(outcomes.values()))
    if output.drawing is not None and len(outcomes) == 1:
        draw(first, output.drawing)
    elif output.drawing is not None:
        draw_comparison(outcomes, output.drawing)
    if output.csv is not None:
        write_jobs(first, output.csv)
    if not output.as_json:
        print_workload(first.workload, machine)
        print_outcomes(outcomes)
        return
    print_notes(first.workload)
    told = {name: figures(one) | {"rejected_because": one.rejections} for name, one in outcomes.items()}
    print(to_json(first) if len(outcomes) == 1 else json.dumps(told))


app.command()(allocate)
app.command("check")(check_command)


def _policies(policies: str, scenario: str | None, given: LogOnCluster) -> dict[str, tuple[str, str]]:
    """Return the names of the allocator and the speed model of each policy, or of the scenario's policies, by name."""
    if scenario is None:
        split = {name: name.partition("@") for name in policies.split(",")}
        return {
            name: (given.policy(policy), given.speed(speed or "as-logged"))
            for name, (policy, _, speed) in split.items()
        }
    if scenario not in SCENARIOS:
        raise JobsError(f"--scenario: expecting one of {', '.join(SCENARIOS)}, got {scenario!r}")
    return SCENARIOS[scenario]


def _compare_parts(
    workload: Workload,
    cluster: Cluster,
    queue: Queue,
    policies: dict[str, tuple[str, str]],
    count: int,
    scenario: str | None,
    as_json: bool,
) -> None:
    """Run each part of a log under each policy, and print the means and confidence intervals of the figures.

    In Pollard's scenario, also print the speed-up of isolated jobs above which isolation pays.
    """
    parts, found = segments(workload, count), dict[str, dict[str, Interval]]()
    rejections = {name: Counter[str]() for name in policies}
    for name, (policy, speed) in policies.items():
        with _progress(name, len(workload) // count) as progress:
            found[name] = replay(parts, cluster, policy, speed, queue, progress, rejections[name])
    pays: Interval | None = None
    if scenario == "pollard":
        with _progress("break-even", len(workload)):
            pays = interval([break_even(part, cluster, queue) for part in parts])
    if as_json:
        told: dict[str, object] = {
            name: {figure: asdict(value) for figure, value in of.items()} for name, of in found.items()
        }
        print_notes(workload)
        facts = {"break_even": None if pays is None else asdict(pays), "rejected_because": rejections}
        print(json.dumps({"policies": told, **facts}))
        return
    print_workload(workload, cluster)
    print_intervals(found, count)
    for name, reasons in rejections.items():
        print_rejections(name, reasons, workload)
    if pays is not None:
        bounds = f" ({pays.low:.1f} to {pays.high:.1f})" if count > 1 else ""
        what = "less run time of isolated jobs above 4 nodes pays for their wait"
        console().print(f"{pays.mean:.1f} %{bounds} {what}")


def _tell_check(watch: IsolationCheck, as_json: bool) -> None:
    screen = console(to_error=as_json)
    if not watch.found:
        screen.print(f"{watch.checks:,} checks: no two running jobs shared a link")
        return
    when, conflicts = watch.found[0]
    first = f"first at {when} s: {len(conflicts)} pairs on {conflicts.num_links} links"
    screen.print(f"{len(watch.found):,} of {watch.checks:,} checks found shared links, {first}")
    raise typer.Exit(1)


def _inputs(given: LogOnCluster, adapters: Adapters, lines: Lines) -> tuple[Workload, Cluster]:
    """Read the log and the cluster, return the chosen jobs and the cluster, and print problems on standard error."""
    columns = lines.columns.split(",") if lines.columns else None
    with reporting(JobsError, f"reading {given.log}", partial=lines.partial, how=adapters) as report:
        cores, read_as = given.cores or given.slots, (lines.partial, columns, lines.arrivals, lines.cluster_name)
        workload = read_workload(given.log, cores, *read_as)
        nodes = workload.machine_nodes if given.nodes is None else given.nodes
        machine = read_cluster(given.source, nodes, given.lfts, report, adapters.rails)
    list_findings(report)
    return given.prepare(workload if lines.first is None else workload.select(slice(lines.first)), machine)


@contextmanager
def _progress(name: str, jobs: int) -> Iterator[Callable[[int], None]]:
    with console(to_error=True).status(name) as status:
        yield lambda ended: status.update(f"{name}: {ended:,} of {jobs:,} jobs")
