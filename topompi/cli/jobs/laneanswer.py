"""The work of ``topompi jobs lanes``: the choice of lanes, simulations, tables, and OpenSM's files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ...inputs.figures import size_name
from ...machine.interference import InterferenceError, characterise
from ...machine.interference.characterisation import Character
from ...machine.interference.crossbar import graph_of
from ...machine.interference.lanes import FoundLanes, Lanes, Trials, by_classes, by_rules, search
from ...machine.interference.lanes.files import write_files
from ...machine.interference.lanes.membership import Member
from ...machine.interference.lanes.opensm import Qos
from ...machine.interference.lanes.report import job_rows, lane_rows, sweep_rows, totals
from ...machine.interference.levels import levels_of
from ...machine.interference.network import SharedNetwork, shared_network
from ...machine.interference.pictures import check_plot
from ...machine.interference.pictures.lanes import draw
from ...machine.interference.placement import place
from ...machine.interference.specs import NO_TIMES, JobSpec, read_jobs
from ...machine.jobs import Cluster
from ...netsim import Hosts, Program
from ...netsim.packets import Settings
from ...topology import Fabric
from ..terminal import console
from .choosing import WAYS, Choosing
from .model import LinkSettings

__all__ = ["Ask", "answer"]

FEW_TURNS = 8  # turns for which every port has room, as those of ibsim
WEIGHTS = (1, 2, 4, 8)  # packets per turn that a search tries


@dataclass(frozen=True)
class Ask:
    """The jobs, where they run, how lanes are chosen, and what to write.

    :param jobs: specification of each job.
    :param placement: text of the placement.
    :param choosing: options of the choice.
    :param links: options of the network.
    :param plot: path of a picture; None for none.
    :param output: path of OpenSM's options; None for none.
    :param cluster_name: name of the cluster whose jobs are taken from the placement's file; None if it has one.
    """

    jobs: tuple[str, ...]
    placement: str
    choosing: Choosing
    links: LinkSettings
    plot: Path | None
    output: Path | None
    cluster_name: str | None = None


def answer(ask: Ask, fabric: Fabric, machine: Cluster, *, partial: bool, as_json: bool) -> None:
    """Choose lanes, simulate, print and write.

    :param ask: jobs and options.
    :param fabric: the fabric.
    :param machine: the cluster of its hosts.
    :param partial: whether wrong lines of traces are skipped and counted.
    :param as_json: whether to print JSON.
    """
    if ask.plot is not None:
        check_plot(ask.plot)
    how, buffer = ask.choosing, ask.links.buffer
    values = _numbers("--sweep", how.sweep)
    specs = _jobs(ask, partial)
    where, programs, nodes = _placed(ask, specs, machine, buffer)
    timed = [job.timed for job in specs]
    characters = _characters(where, list(zip(programs, timed, strict=True)), fabric, machine, ask)
    trials, names = Trials(where, programs, how.draws, how.seed), [one.name for one in programs]
    with console(to_error=True).status("lanes") as status:
        found, lanes = _chosen(ask, characters, names, trials, values, status.update)
        facts: dict[str, object] = {"cluster": machine.name, "placement": ask.placement, "buffer": buffer, "by": how.by}
        facts |= {"draws": how.draws, "jobs": job_rows(names, characters, trials, lanes)}
        facts["lanes"] = lane_rows(names, trials, lanes, buffer)
        facts["one_lane"] = lane_rows(names, trials, Lanes.together(len(names)), buffer)[0]
        facts["total"] = totals(trials, lanes)
        facts["search"] = None if found is None else {"tried": found.tried, "every": found.every}
        if how.sweep is not None:
            facts["sweep"] = sweep_rows(
                trials, lanes, values, ask.links.tries, lambda done, of: status.update(f"weights: {done} of {of}")
            )
    qos = Qos.of(lanes)
    facts["opensm"] = asdict(qos)
    if ask.plot is not None:
        draw(facts, ask.plot)
    if as_json:
        print(json.dumps(facts))
    else:
        _print(facts)
    if ask.output is not None:
        paths = write_files(ask.output, qos, _members(fabric, machine, nodes, lanes))
        words = ", ".join(path.name for path in paths[1:])
        console(to_error=as_json).print(f"wrote {ask.output}, and beside it {words}", soft_wrap=True)
        if (turns := max(len(qos.low), len(qos.high))) > FEW_TURNS:
            text = f"a table has {turns} turns, and some ports have room for {FEW_TURNS}: see VLArbLowCap of the ports"
            console(to_error=True).print(text, soft_wrap=True)


def _jobs(ask: Ask, partial: bool) -> list[JobSpec]:
    """The jobs, without lanes, and with times of computation if their classes decide."""
    specs, by = read_jobs(ask.jobs, partial=partial), ask.choosing.by
    for job in specs:
        if job.lane:
            raise InterferenceError(f"{job.name}: expecting no lane, because lanes are chosen here, got {job.lane}")
        if not job.timed and by != "search":
            raise InterferenceError(f"{job.name}: --by {by}: expecting a job whose load is known, got {NO_TIMES}")
        for note in job.notes:
            console(to_error=True).print(f"{job.name}: {note}", soft_wrap=True)
    return specs


def _placed(
    ask: Ask, specs: Sequence[JobSpec], machine: Cluster, buffer: int
) -> tuple[SharedNetwork, list[Program], dict[str, NDArray[np.int64]]]:
    """The network with one lane, the jobs on their nodes, and these by the jobs' names."""
    tables = shared_network(machine, ask.links.known_rate, ask.links.latency)
    hosts = Hosts(send_overhead=ask.links.overhead, eager=float(ask.links.eager))
    nodes = place(machine, {job.name: job.nodes for job in specs}, ask.placement, ask.cluster_name)
    where = SharedNetwork(tables, "packet", hosts, Settings(buffer=buffer))
    return where, [job.computing(where).on(nodes[job.name]) for job in specs], nodes


def _characters(
    where: SharedNetwork, programs: Sequence[tuple[Program, bool]], fabric: Fabric, machine: Cluster, ask: Ask
) -> list[Character]:
    """The load of each job, with its time on a crossbar that is simulated with packets, too.

    :param where: the network with one lane.
    :param programs: program of each job, and whether its times of computation are known; if not, it has bytes alone.
    :param fabric: the fabric.
    :param machine: the cluster of its hosts.
    :param ask: options of the network and of the classes.
    """
    levels = levels_of(fabric, ask.links.known_rate)
    thresholds = ask.links.thresholds
    host = np.array([fabric.host_index[name] for name in machine.hosts])
    found = []
    for one, timed in programs:
        nodes, at = np.unique(one.hosts, return_inverse=True)
        seconds = float(Trials(where.crossbar(nodes), [replace(one, hosts=at)]).alone[0]) if timed else None
        found.append(characterise(graph_of(one), seconds, host[one.hosts], levels, thresholds=thresholds))
    return found


def _chosen(
    ask: Ask,
    characters: Sequence[Character],
    names: Sequence[str],
    trials: Trials,
    values: Sequence[int],
    said: Callable[[str], None],
) -> tuple[FoundLanes | None, Lanes]:
    """The result of a search, or None, and the lanes with the weights and priorities of the options."""
    how = ask.choosing
    if how.by not in WAYS:
        raise InterferenceError(f"--by: expecting one of {', '.join(WAYS)}, got {how.by!r}")
    for unknown in set(how.high or ()).difference(names):
        raise InterferenceError(f"--high: expecting one of {', '.join(names)}, got {unknown!r}")
    found, usage = (
        None,
        [0.0 if one.seconds is None else one.usage for one in characters],
    )  # 0 only where a search begins
    if how.by == "search":
        if how.weights is not None:
            raise InterferenceError("--weights: expecting --by rules or classes, got search, which chooses them")

        def told(tried: int, least: float) -> None:
            said(f"search: {tried} of at most {ask.links.tries} choices, T_total {least * 1e3:.4g} ms")

        start = by_rules(usage, how.lanes)
        found = search(trials.total, start, how.lanes, values=values, limit=ask.links.tries, seed=how.seed, told=told)
        lanes = found.lanes
    else:
        lanes = (
            by_rules(usage, how.lanes) if how.by == "rules" else by_classes([one.name for one in characters], how.lanes)
        )
    if how.weights is not None:
        weights = tuple(_numbers("--weights", how.weights))
        if len(weights) != len(lanes.weights):
            raise InterferenceError(f"--weights: expecting those of {len(lanes.weights)} lanes, got {how.weights}")
        lanes = replace(lanes, weights=weights)
    high = {lanes.of_job[names.index(name)] for name in how.high or ()}
    return found, replace(lanes, high=tuple(sorted(high)))


def _numbers(option: str, text: str | None) -> list[int]:
    """Numbers of packets with commas; the weights of a search if there is no text."""
    if text is None:
        return list(WEIGHTS)
    if not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", text) or not all(0 < int(one) < 256 for one in text.split(",")):
        raise InterferenceError(f"{option}: expecting numbers of 1 to 255 packets such as 1,2,4, got {text!r}")
    return [int(one) for one in text.split(",")]


def _members(fabric: Fabric, machine: Cluster, nodes: Mapping[str, NDArray[np.int64]], lanes: Lanes) -> list[Member]:
    found = []
    for (name, held), lane in zip(nodes.items(), lanes.of_job, strict=True):
        hosts = [fabric.host_index[machine.hosts[node]] for node in held.tolist()]
        ports = tuple(fabric.adapter_ids[adapter] for host in hosts for adapter in fabric.host_adapters[host])
        found.append(Member(re.sub(r"[^\w.-]", "_", name, flags=re.ASCII), lane, ports))
    return found


def _print(facts: dict[str, Any]) -> None:
    screen, by = console(), facts["by"]
    if facts["search"] is not None:
        by = f"search: {facts['search']['tried']} choices, {'all' if facts['search']['every'] else 'not all'}"
    draws = f"; means of {facts['draws']} draws" if facts["draws"] else ""
    count = len(facts["lanes"])
    words = f"{count} lane{'s' if count > 1 else ''} (by {by}), {size_name(facts['buffer'])} of buffer per port{draws}"
    screen.print(f"{facts['cluster']}, placement {facts['placement']}: {words}", soft_wrap=True)
    table = _table("job", "class", "usage", "lane", "alone", "one lane", "lanes", "change")
    for row in facts["jobs"]:
        times = (f"{row[key] * 1e3:.4g} ms" for key in ("alone", "one_lane", "lanes"))
        change = f"{row['lanes'] / row['one_lane'] - 1:+.1%}"
        usage = "-" if row["usage"] is None else f"{row['usage']:.1%}"
        table.add_row(row["job"], row["class"] or "-", usage, str(row["lane"]), *times, change)
    screen.print(table)
    table = _table("lanes", "jobs", "packets per turn", "buffer", "blocked links")
    for key, row in [("one lane", facts["one_lane"]), *((f"lane {row['lane']}", row) for row in facts["lanes"])]:
        turn = f"{row['weight']}{', high priority' if row['high'] else ''}"
        blocked = f"{row['blocked']:.3g}"
        table.add_row(key, ", ".join(row["jobs"]), turn, size_name(row["buffer"]), blocked)
    screen.print(table)
    screen.print(_total(facts["total"]), soft_wrap=True)
    if "sweep" in facts:
        table = _table("weights", "T_total", "saved", *(row["job"] for row in facts["jobs"]))
        for row in facts["sweep"]:
            saved = "-" if row["reduction"] is None else f"{row['reduction']:.0%}"
            delays = (f"{one * 1e3:+.3g} ms" for one in row["contention"])
            table.add_row(":".join(map(str, row["weights"])), f"{row['total'] * 1e3:.4g} ms", saved, *delays)
        screen.print(table)


def _total(total: dict[str, float | None]) -> str:
    texts = []
    for name in ("one_lane", "lanes"):
        text, deviation = f"{(total[name] or 0.0) * 1e3:.4g}", total.get(f"{name}_deviation")
        texts.append(text if deviation is None else f"{text} ± {deviation * 1e3:.2g}")
    part = total["reduction"]
    saved = "" if part is None else f": {abs(part):.0%} {'less' if part >= 0 else 'more'}"
    return f"T_total, what all jobs lose: {texts[0]} ms on one lane, {texts[1]} ms on the lanes{saved}"


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold")
    for name in columns:
        table.add_column(name, justify="left" if name in ("job", "class", "jobs", "lanes", "weights") else "right")
    return table
