"""The work of ``topompi jobs replay``: simulations of all placements, and their tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ...inputs.figures import bare_name, cut_middle
from ...machine.interference import InterferenceError
from ...machine.interference.network import SharedNetwork, shared_network
from ...machine.interference.pictures import fabric
from ...machine.interference.pictures.runs import draw
from ...machine.interference.placement import draws_of, host_list, nodes_of, place
from ...machine.interference.replay import ReplayTimes, pairwise_delays, prefers, replay
from ...machine.interference.report import FIGURES, link_rows, pair_rows, summary
from ...machine.interference.specs import JobSpec, read_jobs
from ...machine.jobs import Cluster
from ...netsim import Hosts, Program
from ...netsim.packets import Settings
from ...topology import Routes
from ...views.picture.writers import write
from ..rows import SHOWN
from ..terminal import console
from .model import LinkSettings

__all__ = ["JobsCompared", "answer"]


@dataclass(frozen=True)
class JobsCompared:
    """The jobs and placements to compare, and what to show.

    :param jobs: specification of each job.
    :param placements: texts of the placements.
    :param draws: number of draws of a random placement.
    :param repeats: number of runs of each job; 0 to run each again until all have run once.
    :param arriving: name of the job whose two placements are compared; None for none.
    :param shown: ``pairs`` to show which job delays which, ``links`` to show the links of several jobs.
    :param pictures: file of the picture of the fabric (``fabric``), and of that over time (``time``), if wanted.
    :param network: ``flow`` or ``packet``.
    :param lanes: number of virtual lanes of the packet model.
    :param cluster_name: name of the cluster whose jobs are taken from a placement's file; None if it has one.
    """

    jobs: tuple[str, ...]
    placements: tuple[str, ...]
    draws: int
    repeats: int
    arriving: str | None
    shown: frozenset[str]
    pictures: Mapping[str, Path]
    network: str
    lanes: int
    cluster_name: str | None = None


def answer(
    question: JobsCompared, machine: Cluster, routes: Routes, links: LinkSettings, *, partial: bool, as_json: bool
) -> None:
    """Simulate and print.

    :param question: jobs and placements.
    :param machine: the cluster.
    :param routes: routes of the cluster.
    :param links: settings of the network.
    :param partial: whether wrong lines of traces are skipped and counted.
    :param as_json: whether to print JSON.
    """
    specs = read_jobs(question.jobs, partial=partial)
    for job in specs:
        if job.base is not None:
            raise InterferenceError(f"{job.name}: base: expecting jobs whose time is simulated, got {job.base:g} s")
        for note in job.notes:
            console(to_error=True).print(f"{job.name}: {note}", soft_wrap=True)
    where = _network(machine, question, links)
    specs = [job.computing(where) for job in specs]
    found, programs = _simulated(question, where, machine, specs)
    decision = None if question.arriving is None else _decision(specs, found, question.arriving)
    answers = _answers(where, machine, found, programs, question)
    if "time" in question.pictures:
        first = question.placements[0]
        words = f"{machine.name}, placement {bare_name(first)}"
        draw(where, programs[first], found[first][0], question.pictures["time"], words)
    if "fabric" in question.pictures:
        _draw(question, routes, machine, where, programs, found, answers[0].get("pairs"))
    if as_json:
        facts = {"cluster": machine.name, "network": question.network, "latency": links.latency}
        print(json.dumps({**facts, "repeats": question.repeats, "placements": answers, "waits": decision}))
        return
    for one in answers:
        _show(one, answers[0])
    if decision is not None:
        better = "is worth waiting for" if decision else "is not worth waiting for"
        why = f"what all jobs save is compared with what it adds to {question.arriving} itself (rule 3.5)"
        console().print(f"{question.arriving}: {question.placements[1]} {better}; {why}", soft_wrap=True)


def _draw(
    question: JobsCompared,
    routes: Routes,
    machine: Cluster,
    where: SharedNetwork,
    programs: dict[str, list[Program]],
    found: dict[str, list[ReplayTimes]],
    pairs: list[dict[str, Any]] | None,
) -> None:
    """Draw the first draw of the first placement on the fabric; ``pairs`` are simulated if they were not asked for."""
    first = question.placements[0]
    ran, outcome = programs[first], found[first][0]
    if pairs is None:
        pairs = pair_rows(where, ran, outcome, pairwise_delays(where, ran, outcome))
    title = f"{len(ran):,} jobs on the fabric {cut_middle(bare_name(machine.name), 60)}, placement {bare_name(first)}"
    write(fabric.scene(routes, machine, where, ran, outcome, pairs, title), question.pictures["fabric"])


def _network(machine: Cluster, question: JobsCompared, links: LinkSettings) -> SharedNetwork:
    tables = shared_network(machine, links.known_rate, links.latency)
    hosts = Hosts(send_overhead=links.overhead, eager=float(links.eager))
    settings = Settings(lanes=question.lanes, hop_lanes=links.hop_lanes, buffer=links.buffer)
    return SharedNetwork(tables, question.network, hosts, settings)


def _simulated(
    question: JobsCompared, where: SharedNetwork, machine: Cluster, specs: Sequence[JobSpec]
) -> tuple[dict[str, list[ReplayTimes]], dict[str, list[Program]]]:
    """The outcomes of each placement's draws, and the programs of its first draw."""
    found: dict[str, list[ReplayTimes]] = {text: [] for text in question.placements}
    programs: dict[str, list[Program]] = {}
    with console(to_error=True).status("replay") as status:
        for text, outcomes in found.items():
            for one in draws_of(text, question.draws):
                status.update(f"placement {one}")
                nodes = place(machine, {job.name: job.nodes for job in specs}, one, question.cluster_name)
                ran = [job.on(nodes[job.name]) for job in specs]
                programs.setdefault(text, ran)
                outcomes.append(replay(where, ran, question.repeats))
    return found, programs


def _answers(
    where: SharedNetwork,
    machine: Cluster,
    found: dict[str, list[ReplayTimes]],
    programs: dict[str, list[Program]],
    question: JobsCompared,
) -> list[dict[str, Any]]:
    """The figures of each placement; hosts, links and pairs are those of its first draw."""
    reference, answers = next(iter(found.values())), list[dict[str, Any]]()
    for text, outcomes in found.items():
        one = summary(text, outcomes, reference)
        one["hosts"] = {job.name: host_list(machine, nodes_of(job)) for job in programs[text]}
        if "links" in question.shown:
            one["links"] = link_rows(where, programs[text])
        if "pairs" in question.shown:
            delays = pairwise_delays(where, programs[text], outcomes[0])
            one["pairs"] = pair_rows(where, programs[text], outcomes[0], delays)
        answers.append(one)
    return answers


def _decision(specs: Sequence[JobSpec], found: dict[str, list[ReplayTimes]], arriving: str) -> bool:
    names = [job.name for job in specs]
    if arriving not in names:
        raise InterferenceError(f"--arriving: expecting one of {', '.join(names)}, got {arriving!r}")
    if len(found) != 2:
        raise InterferenceError(f"--arriving: expecting two placements, got {len(found)}")
    placed, wanted = (outcomes[0] for outcomes in found.values())
    return prefers(placed, wanted, names.index(arriving))


def _show(one: dict[str, Any], first: dict[str, Any]) -> None:
    screen = console()
    of = f", mean of {one['draws']} draws ± standard deviation" if one["draws"] > 1 else ""
    screen.print(f"placement {one['placement']}{of}")
    table = Table(box=None, header_style="bold")
    for name in ("job", "nodes", *FIGURES, "runs"):
        table.add_column(name, justify="left" if name == "job" else "right")
    for row in one["jobs"]:
        table.add_row(row["job"], f"{row['nodes']:,}", *(_cell(row, figure) for figure in FIGURES), f"{row['runs']:g}")
    screen.print(table)
    waste = f"wasted: {one['wasted']:.4g} node-seconds"
    if one is not first:
        times = one["effectiveness"]
        waste += f"; E = {times:.3g} against {first['placement']}" if times is not None else "; nothing is wasted"
    screen.print(waste)
    for key, of_each in (("links", _link_cells), ("pairs", _pair_cells)):
        if key in one:
            _show_rows(key, [of_each(row) for row in one[key]])


def _cell(row: dict[str, Any], figure: str) -> str:
    unit, places = (1, 3) if figure == "normalised" else (1e3, 4)
    text = f"{row[figure] * unit:.{places}g}"
    text += f" ± {row[f'{figure}_deviation'] * unit:.2g}" if f"{figure}_deviation" in row else ""
    return text if figure == "normalised" else f"{text} ms"


def _link_cells(row: dict[str, Any]) -> dict[str, str]:
    more = f" and {len(row['jobs']) - SHOWN} more" if len(row["jobs"]) > SHOWN else ""
    return {
        "link": row["link"],
        "jobs": ", ".join(row["jobs"][:SHOWN]) + more,
        "busy for": f"{row['time'] * 1e3:.4g} ms",
    }


def _pair_cells(row: dict[str, Any]) -> dict[str, str]:
    delay = f"{row['delay'] * 1e3:.4g} ms"
    cells = {"job": row["job"], "delayed by": row["delayed_by"], "common links": f"{row['links']:,}"}
    return {**cells, "delay": delay, "of alone": f"{row['of_alone']:.1%}"}


def _show_rows(what: str, rows: list[dict[str, str]]) -> None:
    screen = console()
    if not rows:
        screen.print(f"no {what}: no two jobs use one link")
        return
    table = Table(*rows[0], box=None, header_style="bold")
    for row in rows[:SHOWN]:
        table.add_row(*row.values())
    screen.print(table)
    if len(rows) > SHOWN:
        screen.print(f"and {len(rows) - SHOWN:,} more {what}; --json has all")
