"""Parts ``stencil`` and ``alltoall``: tasks placed by their communication, and nodes with and without shared links."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from osu_like_bench.emulate.spec import parse_rate
from topompi.errors import BenchmarkError
from topompi.inputs.hostlist import compress, expand

from .analysis import output
from .bench import LAUNCH, Bench, bench
from .jobs import BYTES, bound, messages
from .plan import Plan, Results

__all__ = ["CABLES", "ORDERS", "TRUNKS", "measure"]

NODES, SLOTS = 8, 4  # of the stencil's job
ORDERS = ("random", "given", "placed")
SECONDS = 8.0  # seconds that the first choice or order takes by the rates
LONGEST = 90.0  # maximum seconds of a job
TOPOMPI = [sys.executable, "-m", "topompi"]
# Two hosts on each leaf switch with one cable of their rate above it: any two hosts of a leaf switch share it.
CABLES = ("8x2", 6, "h[0000-0004,0006,0008,0010,0012,0014]")
CHOICES = ("select", "lowest subtree", "all share")
# Four hosts on each leaf switch, with two cables above it whose traffic is spread evenly (one of twice the rate).
TRUNKS = ("4x4", 8, {"two on a leaf switch": "h[0000-0001,0004-0005,0008-0009,0012-0013]", "four": "h[0000-0007]"})


def measure(plan: Plan, results: Results, parts: Sequence[str]) -> None:
    """Measure some parts of the study; cells that have results are skipped.

    :param plan: settings of the study.
    :param results: results so far, to which new ones are added.
    :param parts: ``stencil``, ``alltoall``, or both.
    """
    for repetition in range(plan.repetitions):
        if "stencil" in parts:
            results.cell(f"stencil/{repetition}", partial(_stencils, plan, plan.seed + repetition))
        if "alltoall" in parts:
            results.cell(f"alltoall/cables/{repetition}", partial(_cables, plan, repetition))
            results.cell(f"alltoall/trunks/{repetition}", partial(_trunks, plan, repetition))


def _rates(plan: Plan) -> tuple[float, float]:
    return 8 * parse_rate(plan.rate, "--rate"), 8 * parse_rate(plan.uplinks, "--uplinks")


def _ran(cluster: Bench, name: str, lines: Sequence[str], ranks: int, hosts: int) -> dict[str, Any]:
    """Run a batch script alone; return the seconds of its rounds, and the share of bytes inside hosts."""
    cluster.submit("\n".join(["#!/bin/sh", "#SBATCH --exclusive --time=2", *lines, ""]), name)
    cluster.wait_until_empty(LONGEST)
    said = output((cluster.work / f"{name}.out").read_text())
    if (said.get("ranks"), said.get("hosts")) != (str(ranks), str(hosts)):
        raise BenchmarkError(f"studies slurm: expecting {ranks} ranks on {hosts} hosts from {name}, got {said}")
    return {"seconds": float(said["seconds"]), "inside": float(said["inside"])}


def _stencils(plan: Plan, seed: int) -> dict[str, Any]:
    """Run the stencil in a random order of its tasks over the nodes, in the given order, and placed by topompi."""
    rate, uplink = _rates(plan)
    ranks, rounds, found = NODES * SLOTS, 0, {}
    with bench(plan.spec, plan.rate, plan.uplinks) as cluster:
        hosts = cluster.hosts[:NODES]
        given = [host for host in hosts for _ in range(SLOTS)]
        shuffled = random.Random(seed).sample(given, ranks)
        orders = {"random": shuffled, "given": given, "placed": _placed(cluster, hosts, ranks)}
        for name, order in orders.items():
            round_seconds = bound("stencil", [cluster.hosts.index(host) for host in order], plan.per_leaf, rate, uplink)
            rounds = rounds or max(1, round(SECONDS / round_seconds))
            file = cluster.script("\n".join(order) + "\n", f"{name}.hosts")
            lines = (
                f"#SBATCH --nodes={NODES} --ntasks-per-node={SLOTS} --nodelist={compress(hosts)}",
                f"{LAUNCH} seq:file={file} -n {ranks} {cluster.program} stencil {BYTES} {rounds}",
            )
            one = _ran(cluster, f"stencil-{name}", lines, ranks, NODES)
            found[name] = {**one, "predicted": rounds * round_seconds}
            print(f"  {name}: {found[name]}", flush=True)
    return found


def _placed(cluster: Bench, hosts: Sequence[str], ranks: int) -> list[str]:
    """Return each task's host by ``topompi slurm place``."""
    lines = [f"{a} {b} {BYTES}" for a, b in messages("stencil", ranks)]
    graph, order = cluster.script("\n".join(lines) + "\n", "graph.txt"), cluster.work / "order"
    words = [str(graph), "--topology", str(cluster.network.path)]
    words += ["--hosts", compress(hosts), "--slots", str(SLOTS), "-o", str(order)]
    cluster.told(*TOPOMPI, "slurm", "place", *words)
    kept = [line for line in order.read_text().splitlines() if not line.startswith("#")]
    return " ".join(kept).replace(",", " ").split()


def _cables(plan: Plan, repetition: int) -> dict[str, Any]:
    """Run the alltoall on nodes that topompi chooses apart, on those of the lowest subtree, and on pairs alone."""
    spec, size, idle = CABLES
    with bench(spec, plan.rate, plan.rate) as cluster:
        choose = [*TOPOMPI, "slurm", "select", "-N", str(size), "--topology", str(cluster.network.path), "--idle", idle]
        texts = (cluster.told(*choose), cluster.told(*choose, "--policy", "bestfit"), compress(cluster.hosts[:size]))
        nodes = dict(zip(CHOICES, map(str.strip, texts), strict=True))
        rate, _ = _rates(plan)
        return _alltoalls(cluster, nodes, repetition, (2, rate, rate))


def _trunks(plan: Plan, repetition: int) -> dict[str, Any]:
    spec, _, nodes = TRUNKS
    rate, _ = _rates(plan)
    with bench(spec, plan.rate, f"{2 * rate:.0f}") as cluster:
        return _alltoalls(cluster, nodes, repetition, (4, rate, 2 * rate))


def _alltoalls(
    cluster: Bench, choices: Mapping[str, str], repetition: int, tree: tuple[int, float, float]
) -> dict[str, Any]:
    """Run the same alltoall on each choice of nodes; the order of the choices alternates between repetitions."""

    def seconds_of(nodes: str) -> float:
        return bound("alltoall", [cluster.hosts.index(host) for host in expand(nodes)], *tree)

    rounds, found = max(1, round(SECONDS / seconds_of(next(iter(choices.values()))))), {}
    for name, nodes in [*choices.items()][:: -1 if repetition % 2 else 1]:
        hosts = expand(nodes)
        lines = (
            f"#SBATCH --nodes={len(hosts)} --ntasks-per-node=1 --nodelist={nodes}",
            f"{LAUNCH} ppr:1:node {cluster.program} alltoall {BYTES} {rounds}",
        )
        one = _ran(cluster, f"alltoall-{name.replace(' ', '-')}", lines, len(hosts), len(hosts))
        found[name] = {**one, "nodes": nodes, "predicted": rounds * seconds_of(nodes)}
        print(f"  {name}: {found[name]}", flush=True)
    return found
