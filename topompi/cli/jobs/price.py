"""``topompi jobs price``: what jobs on one node lose to each other, and what they pay."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...inputs.files import read_text
from ...inputs.writing import write_text
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.estimates.estimators import METHODS
from ...machine.colocation.estimates.records import read_records
from ...machine.colocation.prices.accounts import Ledger
from ...machine.colocation.prices.billing import Bill, bill, charge_all, is_list, read_runs
from ...machine.colocation.prices.reports import to_csv, to_html, to_json
from ...machine.colocation.prices.rules import RULES, Run, charged_cores
from ...machine.jobs import read_workload
from ..inputs import AsJson, ClusterName
from ..quantities import FACTOR, PER_HOST, SEED
from ..terminal import console

__all__ = ["price_command"]

_FILES = (
    "Logs of topompi shutter, one per node; last the jobs: sacct (-P, --json), or CSV "
    "job,seconds,cores[,project,user,solo_seconds]."
)
WRITERS = {".csv": to_csv, ".json": to_json, ".html": to_html}


def price_command(
    files: Annotated[list[Path] | None, typer.Argument(metavar="LOG... JOBS", help=_FILES, show_default=False)] = None,
    *,
    rate: Annotated[float | None, FACTOR("--rate", help="Service units per core and hour.")] = None,
    rule: Annotated[
        str, typer.Option("--rule", help=f"{', '.join(RULES)}, or module:function of a site's factor.")
    ] = "poppa",
    method: Annotated[str, typer.Option("--estimator", help=f"{', '.join(METHODS)}.")] = "balanced",
    cores: Annotated[
        int | None, PER_HOST("--cores", help="Cores of a node, needed for sacct; jobs pay for whole nodes.")
    ] = None,
    seed: Annotated[int, SEED("--seed", help="Seed of the intervals.")] = 0,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge the prices to the projects of this ledger, each job once.")
    ] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option("--grant", help="PROJECT:NAME=AMOUNT: give a project of --ledger a budget, first and once."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="FILE.csv, .json or .html: the accounts of --ledger.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no entry of --ledger was changed; needs no files.")
    ] = False,
    cluster_name: ClusterName = None,
    as_json: AsJson = False,
) -> None:
    """Price jobs that shared nodes by what the shutter measured; show estimates, intervals and discounts.

    The price of a job with performance p = T_solo / T_co is rate x cores x p x p x T_co by the rule poppa. Time in
    which the shutter stopped the job is not charged. Estimates above 1 count as 1. A job on several nodes has the
    performance of its slowest node.
    """
    if ledger is None and (grant or report or verify):
        option = "--grant" if grant else "--report" if report else "--verify"
        raise ColocationError(f"{option}: expecting --ledger, too, got none")
    if report is not None and report.suffix not in WRITERS:
        raise ColocationError(f"--report: expecting a name that ends with {', '.join(WRITERS)}, got {report}")
    if verify and ledger is not None:
        _verify(ledger, as_json=as_json)
        if not files:
            return
    *logs, jobs = files or [Path()]
    if not logs or rate is None:
        got = "no --rate" if logs else f"{len(files or [])} files"
        raise ColocationError(f"jobs price: expecting logs of the shutter, a list of jobs and --rate, got {got}")
    runs, records = _runs(jobs, cores, cluster_name), [read_records(log) for log in logs]
    bills = bill(records, runs, rate / 3600, rule, method, seed=seed)
    others = sorted({job for log in records for job in log.jobs} - {run.job for run in runs})
    new = None if ledger is None else _account(ledger, grant or [], bills, report)
    if as_json:
        facts = {"rule": rule, "rate": rate, "jobs": [_facts(one) for one in bills], "unpriced": others, "charged": new}
        print(json.dumps(facts))
        return
    _print(bills, rule)
    if others:
        console().print(f"not priced, because they are not in {jobs}: {', '.join(others)}", markup=False)
    if new is not None:
        console().print(f"charged: {new:,} of {len(bills):,} jobs; the others were charged before", markup=False)


def _runs(path: Path, cores: int | None, cluster: str | None) -> list[Run]:
    """Read the runs from a list, or from a log of whole nodes."""
    if is_list(read_text(path, ColocationError, "sacct or a list of jobs")):
        runs = read_runs(path)
        return runs if cores is None else [replace(run, cores=charged_cores(run.cores, cores)) for run in runs]
    if cores is None:
        raise ColocationError(f"{path}: expecting --cores, because it has nodes, got none")
    workload = read_workload(path, cores, cluster=cluster)
    blank = [""] * len(workload)
    projects, users = workload.columns.get("account", blank), workload.columns.get("user_name", blank)
    return [
        Run(str(number), float(seconds), int(nodes) * cores, str(project), str(user))
        for number, seconds, nodes, project, user in zip(
            workload.number.tolist(), workload.run.tolist(), workload.nodes.tolist(), projects, users, strict=True
        )
    ]


def _account(path: Path, grants: list[str], bills: list[Bill], report: Path | None) -> int:
    """Check the ledger, grant budgets, charge bills, write the report, and return the number of new charges."""
    with Ledger(path) as ledger:
        ledger.verify()
        for text in grants:
            ledger.grant(*_granted(text))
        new = charge_all(ledger, bills)
        if report is not None:
            write_text(report, WRITERS[report.suffix](ledger))
    return new


def _verify(path: Path, *, as_json: bool) -> None:
    """Check a ledger's entries, and say their number and the last digest."""
    if not path.exists():
        raise ColocationError(f"{path}: expecting a ledger, got no file")
    with Ledger(path) as ledger:
        entries, digest = ledger.verify()
    if as_json:
        print(json.dumps({"entries": entries, "digest": digest}))
    else:
        console().print(f"{path}: {entries:,} entries, none changed; the last digest is {digest or '-'}", markup=False)


def _granted(text: str) -> tuple[str, str, float]:
    name, _, amount = text.rpartition("=")
    project, _, key = name.partition(":")
    try:
        value = float(amount)
    except ValueError:
        value = 0.0
    if not (project and key and value):
        raise ColocationError(f"--grant: expecting PROJECT:NAME=AMOUNT, got {text!r}")
    return project, key, value


def _facts(one: Bill) -> dict[str, object]:
    prices = {"price": asdict(one.price) | {"discount": one.price.discount}, "usual": one.usual.amount}
    return asdict(one.run) | prices | {"estimate": asdict(one.found), "basis": one.basis}


def _print(bills: list[Bill], rule: str) -> None:
    table = Table(box=None, header_style="bold")
    measured = ("performance", "95 %", "shutters")
    for name in ("job", "project", "cores", "hours", *measured, rule, "95 %", "as usual", "discount"):
        table.add_column(name, justify="left" if name in ("job", "project") else "right")
    notes = []
    for one in bills:
        run, found = one.run, one.found
        cells = [run.job, run.project or "-", f"{run.cores:,}", f"{run.seconds / 3600:,.2f}", f"{one.price.raw:.3f}"]
        cells += [f"{found.low:.3f}-{found.high:.3f}", f"{found.kept:,}/{found.total:,}"]
        cells += [f"{one.price.amount:,.2f}", f"{one.price.low:,.2f}-{one.price.high:,.2f}"]
        table.add_row(*cells, f"{one.usual.amount:,.2f}", f"{100 * one.price.discount:.1f} %")
        if why := one.basis.get("why"):
            notes.append(f"{run.job}: {why}")
    screen = console()
    screen.print(table)
    for note in notes:
        screen.print(note, markup=False)
