"""``topompi slurm bridge``: the loop that places the jobs of a running Slurm, and the files that set it up."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ...errors import SourceError
from ...inputs.slurm.commands import printed
from ...inputs.slurm.reports import records
from ...inputs.writing import write_text
from ...machine.daemon.log import log_as_json
from ...machine.daemon.pages import audience, parse_address, served
from ...machine.daemon.unit import own_command
from ...machine.slurm.bridge import BridgeRules, Planner
from ...machine.slurm.controller import Commands
from ...machine.slurm.live import Renewal, cluster_now
from ...machine.slurm.loop import Bridge, Pace
from ...machine.slurm.setup import FIELDS, guard, partition_lines, service, steps
from ...views.cluster import read_cluster
from ..inputs import Lfts, Settings, TopologyOptions, list_findings, reporting, require_source, settings_of, topology
from ..quantities import COUNT, SECONDS
from .partitions import OR_SLURM, PARTITIONS, Partitions, split_partitions

__all__ = ["bridge"]

_SETUP = "Print partitions, guard, unit and how to undo them, or write them into the folder of -o; change nothing."
_FOLDER = "Folder for the files of --setup; else they are printed."
KNOBS = {"patience": (COUNT, 10), "failures": (COUNT, 5), "timeout": (SECONDS, 10.0)}


def bridge(
    policy: Annotated[str, typer.Option("--policy", help="Allocator that chooses the nodes.")] = "isolated",
    source: Annotated[str | None, topology(OR_SLURM)] = None,
    lfts: Lfts = None,
    queue: Annotated[str, typer.Option("--queue", help="easy, no-overtaking, conservative.")] = "easy",
    partitions: Partitions = PARTITIONS,
    seconds: Annotated[float, SECONDS("--every", help="Seconds between passes.", min=0.05)] = 1.0,
    settings: Settings = None,
    listen: Annotated[str | None, typer.Option("--listen", help="Address for GET /metrics and /health.")] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Log what would be done, and change nothing.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Make one pass and end; the door stays closed.")] = False,
    setup: Annotated[bool, typer.Option("--setup", help=_SETUP)] = False,
    folder: Annotated[Path | None, typer.Option("--output", "-o", help=_FOLDER)] = None,
    *,
    how: TopologyOptions,
) -> None:
    """Place the jobs of a running Slurm by an allocator of topompi, until SIGTERM; the log is JSON on standard error.

    Jobs wait in the first partition of --partitions, which is down meanwhile, and start in the second. --setup prints
    what an administrator needs for them; their limits are those of the third, for which Slurm is asked. On any error,
    and at the end, the door is opened: Slurm places all jobs.
    SIGHUP reads the topology again; a topology service is asked every minute whether its routes have changed. Settings:
    timeout (seconds that a command of Slurm may take), patience (seconds in which a placed job has to start), failures
    (failed passes before the door opens).
    """
    if setup:
        _write_setup(split_partitions(partitions), policy, source or "SOURCE", folder)
        return
    require_source(source, lfts, how)
    knobs = settings_of(settings, KNOBS, SourceError)
    log_as_json("topompi.machine.slurm")
    rules = BridgeRules(policy, queue, *split_partitions(partitions), knobs["patience"])

    def plan() -> Planner:
        with reporting(SourceError, "reading", partial=how.partial, how=how) as report:
            machine = cluster_now(report) if source is None else read_cluster(source, None, lfts, report, how.rails)
        list_findings(report)
        return Planner(machine, rules)

    again = threading.Event()
    renewal = Renewal(source or "", again, plan)
    made = Bridge(Commands(knobs["timeout"]), plan(), Pace(seconds, knobs["failures"], dry), renewal)
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


def _write_setup(partitions: tuple[str, str, str], policy: str, source: str, folder: Path | None) -> None:
    """Print or write what an administrator needs for the bridge: partitions, guard, unit, and how to undo them.

    :param partitions: new partition in which jobs wait, new one in which placed jobs run, and that of the users now.
    :param policy: allocator, for the unit.
    :param source: topology source, for the unit.
    :param folder: folder to write the files to; None to print them.
    """
    door, run, usual = partitions
    rules = BridgeRules(policy, None, door, run, usual)
    words = ["slurm", "bridge", "--policy", policy, "--topology", source]
    if (text := ",".join(partitions)) != PARTITIONS:
        words += ["--partitions", text]
    files = {
        "slurm.conf.lines": partition_lines(rules, _limits_of(usual)),
        "job_submit.lua": guard(rules),
        "topompi-bridge.service": service(rules, own_command(words, "bridge")),
        "STEPS.txt": steps(rules),
    }
    for name, text in files.items():
        if folder is None:
            print(f"==> {name} <==\n{text}")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / name, text)


def _limits_of(partition: str) -> dict[str, str]:
    """Ask Slurm for the fields of a partition."""
    wanted = f"the partition {partition} (--partitions)"
    text = printed(("scontrol", "--oneliner", "show", "partition", partition), wanted)
    for fields, _ in records(text, "PartitionName", FIELDS):
        return fields
    raise SourceError(f"scontrol: expecting {wanted}, got none")
