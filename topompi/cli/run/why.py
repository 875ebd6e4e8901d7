"""``topompi why``: what would run for a call of a job, and why, without MPI."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ...errors import TopompiError
from ...mapping.placement import place
from ...schedules.registry import ALGORITHMS
from ...topology import TopologyInterface, load_routes
from ..hosts import HOSTS_HELP, find_hosts
from ..sizes import parse_bytes
from ..terminal import Limit, console

if TYPE_CHECKING:
    from ...selection.choice import Choice

__all__ = ["WhyError", "why"]

VIRTUAL_HOSTS = "TOPOMPI_HOSTS"


class WhyError(TopompiError, ValueError):
    """The command was asked about a call or a library that it does not know."""


def why(
    operation: Annotated[str, typer.Argument(help="A call, such as alltoall or allreduce.")],
    size: Annotated[str, typer.Argument(help="Bytes, such as 64K: as topompi tune counts them.")],
    topology: Annotated[
        str, typer.Option("--topology", help="A topology source.", envvar="TOPOMPI_TOPOLOGY", show_envvar=True)
    ],
    lfts: Annotated[Path | None, typer.Option("--lfts", help="Forwarding tables: file, directory or archive.")] = None,
    hosts: Annotated[str | None, typer.Option("--hosts", help=HOSTS_HELP)] = None,
    ppn: Annotated[int, typer.Option("--ppn", help="Ranks on each host.", min=1)] = 1,
    placement: Annotated[str, typer.Option("--place", help="block, cyclic or random:SEED.")] = "block",
    root: Annotated[int, typer.Option("--root", help="The root of a rooted collective.", min=0)] = 0,
    library: Annotated[
        str, typer.Option("--library", help="What MPI.Get_library_version() says, such as 'Open MPI v5.0.11'.")
    ] = "",
    rules: Annotated[
        str | None, typer.Option("--rules", help="A rules file.", envvar="TOPOMPI_RULES", show_envvar=True)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    limit: Limit = None,
) -> None:
    """Say what topompi would run for a call where nothing has been measured, and why.

    The first row is the MPI library's own algorithm; without --library the fastest of those that the libraries with a
    model would take. Below it is the default set: what may run without a trial. The last line says what a trial could
    find by the same model. With --rules a rule that matches decides, and those before it that cannot run are named with
    their reasons; a rule for a topology or a library is matched with --topology. Where $TOPOMPI_HOSTS places ranks
    virtually the answer is for its hosts as if they were real; the last line has what runs in the virtual job.
    """
    from ...prediction.predictor import Predictor
    from ...prediction.scope import unmodelled
    from ...prediction.untuned import predict

    method, nbytes = _method(operation), parse_bytes(size, "BYTES", WhyError)
    pretended = os.environ.get(VIRTUAL_HOSTS)
    interface = _interface(topology, lfts, hosts or pretended, ppn, placement)
    predictor = Predictor(interface, _library(library))

    def runs(algorithm: str) -> bool:
        return algorithm.partition("/")[0] in ALGORITHMS[_collective(method)]

    facts: dict[str, Any]
    ruled, said = _by_rules(rules, method, nbytes, interface)
    found = predict(predictor, method, nbytes, root, runs)
    if found.native is None or ruled:
        choice = ruled or found
        reason = "; ".join(filter(None, (choice.reason, said)))
        facts = {"algorithm": choice.algorithm, "reason": reason}
        print(json.dumps(facts) if as_json else _runs(facts))
        return
    best = predictor.rank(method, nbytes, root, lambda name: runs(name) and not _joint(method, name))[0]
    facts = {
        "operation": method,
        "bytes": nbytes,
        "job": interface.describe(),
        "native": {"algorithm": found.native.says, "seconds": found.native.seconds},
        "default": [{"algorithm": name, "seconds": seconds} for name, seconds in found.ours],
        "algorithm": found.algorithm,
        "reason": "; ".join(filter(None, (found.reason, said))),
        "trial": {"algorithm": best[0], "seconds": best[1]},
    }
    if pretended:
        because = unmodelled(replace(interface, virtual=True))
        facts["virtual"] = {"algorithm": "native", "reason": because}
    if as_json:
        print(json.dumps(facts))
    else:
        _print(facts, float(found.seconds or 0.0))


def _by_rules(path: str | None, method: str, nbytes: int, interface: TopologyInterface) -> tuple[Choice | None, str]:
    """The choice of the rule that decides, if one does, and what is to be said of rules that cannot run."""
    if not path:
        return None, ""
    from ...execution.eligibility import why_not
    from ...selection.classes import class_bytes, size_class
    from ...selection.rules import Rules
    from ...views.job import Job

    def runs(algorithm: str) -> bool:
        divides = algorithm != "levels" or len(interface.levels) > 0
        return divides and not _joint(method, algorithm) and not why_not(method, algorithm)

    found, job, smallest = Rules.read(path), Job(interface, ""), class_bytes(size_class(nbytes))[0]
    return found.choice(method, smallest, job, runs), found.passed_over(method, smallest, job, runs)


def _print(facts: dict[str, Any], predicted: float) -> None:
    native = facts["native"]
    print(f"{facts['operation']} of {facts['bytes']:,} bytes: {facts['job']}")
    table = Table(box=None, pad_edge=False)
    for name in ("algorithm", "predicted (us)", "times as fast as native"):
        table.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    table.add_row(f"native: {native['algorithm']}", f"{1e6 * native['seconds']:,.0f}", "")
    for one in facts["default"]:
        gain = native["seconds"] / one["seconds"]
        table.add_row(one["algorithm"], f"{1e6 * one['seconds']:,.0f}", f"{gain:.2f}")
    console().print(table)
    print(_runs(facts))
    trial = facts["trial"]
    more = predicted / trial["seconds"]
    if more > 1.02:
        print(f"a trial may find up to {more:.2f}x more, by {trial['algorithm']}")
    else:
        print("the model knows nothing that a trial could add")
    if "virtual" in facts:
        print(f"{facts['virtual']['algorithm']} runs under {VIRTUAL_HOSTS}: {facts['virtual']['reason']}")


def _runs(facts: dict[str, Any]) -> str:
    """What runs, and the reason, in a line."""
    name = facts["algorithm"]
    own = " (the MPI library's own)" if name == "native" else ""
    return f"runs: {name}{own}; reason: {facts['reason'].removeprefix(f'{name}: ')}"


def _interface(topology: str, lfts: Path | None, hosts: str | None, ppn: int, placement: str) -> TopologyInterface:
    routes = load_routes(topology, lfts)
    names = find_hosts(hosts) or list(routes.fabric.hosts)
    return TopologyInterface.place(place(ppn * len(names), names, placement), routes, source=topology)


def _library(words: str) -> Any:
    from ...prediction.libraries import model_of

    if not words:
        return None
    found = model_of(words, {})
    if found is None:
        raise WhyError(
            f"--library: expecting a library with a model, as MPI.Get_library_version() names it, got {words!r}"
        )
    return found


def _collective(method: str) -> str:
    from ...execution.specs import CALLS

    return CALLS[method].collective


def _joint(method: str, name: str) -> bool:
    found = ALGORITHMS[_collective(method)].get(name)
    return found is not None and found.joint


def _method(name: str) -> str:
    """mpi4py's name of a call whose size all ranks know: of ``Alltoallv`` and ``Alltoallw`` they agree on one."""
    from ...execution.specs import CALLS, Form

    sized = [method for method, spec in CALLS.items() if spec.sized_by is not None or spec.form is Form.ALLTOALL]
    found = next((method for method in CALLS if method.lower() == name.lower()), None)
    if found is None:
        raise WhyError(f"expecting one of {', '.join(map(str.lower, sized))}, got {name!r}")
    if found not in sized:
        raise WhyError(f"{found}: expecting a size that all ranks know, which it has not: native runs by itself")
    return found
