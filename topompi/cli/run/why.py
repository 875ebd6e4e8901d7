"""``topompi why``: the algorithm that would run for a call of a job, and the reason, without MPI."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer
from rich.table import Table

from ...errors import TopompiError
from ..hosts import Placement, find_hosts
from ..inputs import Adapters, AsJson, Hosts, Lfts, Ppn, Topology, grouped, job_view, list_findings, reporting
from ..quantities import RANKS, parse_bytes
from ..terminal import Limit, console

__all__ = ["WhyError", "why"]

VIRTUAL_HOSTS = "TOPOMPI_HOSTS"


class WhyError(TopompiError, ValueError):
    """The command asks about an unknown call or an unknown MPI library."""


@grouped
def why(
    operation: Annotated[str, typer.Argument(help="A call, such as alltoall or allreduce.")],
    size: Annotated[str, typer.Argument(help="Bytes, such as 64K: as topompi tune counts them.")],
    *,
    topology: Topology,
    lfts: Lfts = None,
    hosts: Hosts = None,
    ppn: Ppn = 1,
    placement: Placement = "block",
    root: Annotated[int, RANKS("--root", help="The root of a rooted collective.", min=0)] = 0,
    library: Annotated[
        str, typer.Option("--library", help="What MPI.Get_library_version() says, such as 'Open MPI v5.0.11'.")
    ] = "",
    rules: Annotated[
        str | None, typer.Option("--rules", help="A rules file.", envvar="TOPOMPI_RULES", show_envvar=True)
    ] = None,
    adapters: Adapters,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Say what topompi would run for a call where nothing has been measured, and why.

    Times are predicted for the middle of the size's class, as in a job: 24K for 16K to 32K.
    The first row is the MPI library's own algorithm; without --library, it is the fastest among those that the known
    libraries would run. Below it is the default set: the algorithms that may run without a trial. The last line shows
    what a trial could find by the same model. With --rules, the first rule that matches and can run decides, and
    earlier rules that match but cannot run are named with their reasons; a rule for a topology or a library is matched
    with --topology. If $TOPOMPI_HOSTS places ranks virtually, the answer treats its hosts as real ones; the last line
    then shows what runs in the virtual job.
    """
    from ...mpi.selection.explanation import explain

    method, nbytes = _method(operation), parse_bytes(size, "BYTES", WhyError)
    pretended = os.environ.get(VIRTUAL_HOSTS)
    with reporting(WhyError, f"reading {topology}", how=adapters) as report:
        found = find_hosts(hosts or pretended)
        interface = job_view((topology, lfts, adapters), found, ppn, placement, report)
        report.step(f"predicting {method}")
        facts = explain(interface, method, nbytes, root, _library(library), rules, virtual=bool(pretended))
    list_findings(report)
    if as_json:
        print(json.dumps(facts))
    elif "native" in facts:
        _print(facts)
    else:
        print(_runs(facts))


def _print(facts: dict[str, Any]) -> None:
    from ...mpi.prediction.words import footnotes

    native = facts["native"]
    print(f"{facts['operation']} of {facts['bytes']:,} bytes, predicted at {facts['predicted_at']:,}: {facts['job']}")
    table = Table(box=None, pad_edge=False)
    for name in ("algorithm", "predicted (us)", "times as fast as native"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    known = native["seconds"]
    table.add_row(f"native: {native['algorithm']}", "no route" if known is None else f"{1e6 * known:,.0f}", "")
    for one in facts["default"]:
        gain = "" if known is None else f"{known / one['seconds']:.2f}"
        table.add_row(one["algorithm"], f"{1e6 * one['seconds']:,.0f}", gain)
    console().print(table)
    print(_runs(facts))
    for line in footnotes([native["algorithm"], facts["reason"]]):
        print(line)
    trial = facts["trial"]
    times = {"native": known or 0.0, **{one["algorithm"]: one["seconds"] for one in facts["default"]}}
    more = times.get(facts["algorithm"], 0.0) / trial["seconds"]
    if more > 1.02:
        print(f"a trial may find up to {more:.2f}x more, by {trial['algorithm']}")
    else:
        print("the model knows nothing that a trial could add")
    if "virtual" in facts:
        print(f"{facts['virtual']['algorithm']} runs under {VIRTUAL_HOSTS}: {facts['virtual']['reason']}")


def _runs(facts: dict[str, Any]) -> str:
    """Return the line that names the chosen algorithm and the reason.

    :param facts: the answer as it is printed as JSON.
    """
    name = facts["algorithm"]
    own = " (the MPI library's own)" if name == "native" else ""
    return f"runs: {name}{own}; reason: {facts['reason'].removeprefix(f'{name}: ')}"


def _library(words: str) -> Any:
    from ...mpi.prediction.libraries import model_of

    if not words:
        return None
    found = model_of(words, {})
    if found is None:
        raise WhyError(
            f"--library: expecting a library with a model, as MPI.Get_library_version() names it, got {words!r}"
        )
    return found


def _method(name: str) -> str:
    """Return mpi4py's name of a call for which a size can be given.

    All ranks know its size, or agree on one (``Alltoallv`` and ``Alltoallw``).

    :param name: name of the call, in any case.

    :raises WhyError: if the call is unknown, or its ranks know no common size.
    """
    from ...mpi.execution.specs import CALLS, Form

    sized = [method for method, spec in CALLS.items() if spec.sized_by is not None or spec.form is Form.ALLTOALL]
    found = next((method for method in CALLS if method.lower() == name.lower()), None)
    if found is None:
        wanted = f"one of {', '.join(map(str.lower, sized))} (docs/limits.md: non-blocking calls)"
        raise WhyError(f"expecting {wanted}, got {name!r}")
    if found not in sized:
        raise WhyError(f"{found}: expecting a size that all ranks know, which it has not: native runs by itself")
    return found
