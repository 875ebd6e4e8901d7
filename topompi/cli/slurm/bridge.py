"""``topompi slurm bridge``: the loop that places the jobs of a running Slurm."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from typing import Annotated

import typer

from ...daemon.log import log_as_json
from ...daemon.pages import audience, parse_address, served
from ...errors import SourceError
from ...slurm.bridge import Planner, Policy
from ...slurm.controller import Commands
from ...slurm.live import Renewal, cluster_now
from ...slurm.loop import Bridge, Pace
from ...views.cluster import read_cluster
from ..inputs import Lfts, Reading, list_findings, reporting, require_source
from ..quantities import COUNT, SECONDS

__all__ = ["bridge"]

_CLUSTER = "A topology source; else what scontrol show topology prints, which has no routes."


def bridge(
    policy: Annotated[str, typer.Option("--policy", help="Allocator that chooses the nodes.")] = "isolated",
    cluster: Annotated[str | None, typer.Option("--cluster", help=_CLUSTER)] = None,
    lfts: Lfts = None,
    queue: Annotated[str, typer.Option("--queue", help="easy, no-overtaking, conservative.")] = "easy",
    door: Annotated[str, typer.Option("--door", help="Partition in which jobs wait.")] = "door",
    run: Annotated[str, typer.Option("--run", help="Partition in which placed jobs run.")] = "run",
    usual: Annotated[str, typer.Option("--usual", help="Partition of jobs that are left to Slurm.")] = "all",
    seconds: Annotated[float, SECONDS("--every", help="Seconds between passes.", min=0.05)] = 1.0,
    limit: Annotated[float, SECONDS("--time-limit", help="Seconds that a command of Slurm may take.", min=0.1)] = 10.0,
    patience: Annotated[int, COUNT("--patience", help="Seconds in which a placed job has to start.")] = 10,
    failures: Annotated[int, COUNT("--failures", help="Failed passes before the door opens.")] = 5,
    listen: Annotated[str | None, typer.Option("--listen", help="Address for GET /metrics and /health.")] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Log what would be done, and change nothing.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Make one pass and end; the door stays closed.")] = False,
    *,
    how: Reading,
) -> None:
    """Place the jobs of a running Slurm by an allocator of topompi, until SIGTERM; the log is JSON on standard error.

    Jobs wait in the partition --door, which is down meanwhile, and start in the partition --run. topompi slurm setup
    prints the lines of slurm.conf for them. On any error, and at the end, the door is opened: Slurm places all jobs.
    SIGHUP reads the cluster again; a topology service is asked every minute whether its routes have changed.
    """
    require_source(cluster, lfts, how)
    log_as_json("topompi.slurm")
    rules = Policy(policy, queue, door, run, usual, patience)

    def plan() -> Planner:
        with reporting(SourceError, "reading", partial=how.partial, how=how) as report:
            machine = cluster_now(report) if cluster is None else read_cluster(cluster, None, lfts, report, how.rails)
        list_findings(report)
        return Planner(machine, rules)

    again = threading.Event()
    renewal = Renewal(cluster or "", again, plan)
    made = Bridge(Commands(limit), plan(), Pace(seconds, failures, dry), renewal)
    if once:
        made.check_partitions()
        made.make_pass()
        raise typer.Exit(int(made.counters.passes == 0))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: again.set())
    with ExitStack() as stack:
        if listen is not None:
            text = "text/plain; version=0.0.4"
            pages = {"/metrics": lambda: (text, made.metrics()), "/health": lambda: ("text/plain", made.health())}
            stack.enter_context(served(parse_address(listen), pages))
            print(f"topompi: {listen}: {audience(parse_address(listen)[0])}", file=sys.stderr)
        made.run(stop)
