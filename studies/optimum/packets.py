"""Broadcasts and reductions simulated as packets, beside flows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from topompi.netsim import Program, Tables
from topompi.netsim.flows import Hosts
from topompi.netsim.flows import run as flow
from topompi.netsim.packets import PRESETS, least_hop_lanes, run
from topompi.schedules import Network, optimum
from topompi.schedules.segments import make_cut
from topompi.views.program import program_of, wiring_of

from .fabrics import FABRICS, QUICK, network

__all__ = ["HEAD", "rows"]

CASES = ("torus 4x4x4", "torus 8x8, random order", "dragonfly 4,2,2", "Janus, nue", "XGFT 4:1", "uneven leaves")
SIZES = {
    "1 MiB": (1 << 20, ("packed_trees", "packed_trees/8K", "chain/8K")),
    "16 MiB": (16 << 20, ("packed_trees", "chain/16K")),
}
HEAD = ("fabric", "collective", *(f"{size}: {name}" for size, (_, names) in SIZES.items() for name in names))


def rows(quick: bool, hosts: Hosts) -> Iterator[list[str]]:
    """Yield the rows of the table; a cell has the times by flows and by packets, over the least time.

    :param quick: whether to take the small fabrics.
    :param hosts: what hosts add to a message's time.
    """
    for name in QUICK if quick else CASES:
        place = network((QUICK if quick else FABRICS)[name])
        if place is None:
            yield [name, "its data are not here", *["-"] * (len(HEAD) - 2)]
            continue
        for collective in ("bcast", "reduce"):
            least = optimum(collective, place).given.seconds
            times = (_times(place, collective, nbytes, one, hosts) for nbytes, names in SIZES.values() for one in names)
            yield [name, collective, *("; ".join(f"{one / least:.2f}" for one in both) for both in times)]


def _times(place: Network, collective: str, nbytes: int, name: str, hosts: Hosts) -> tuple[float, float]:
    """The seconds per byte of a schedule as flows and as packets."""
    made, tables = make_cut(collective, name, place, 0, nbytes), wiring_of(place)
    if not isinstance(tables, Tables):
        raise TypeError(f"expecting tables of next-hop links, got {type(tables).__name__}")
    program = program_of(made.schedule, place, made.block_bytes)
    by_flows = float(flow(tables, [program], hosts=hosts).job_seconds[0])
    return by_flows / nbytes, _packets(program, tables, hosts) / nbytes


def _packets(program: Program, tables: Tables, hosts: Hosts) -> float:
    one, other = np.nonzero(~np.eye(len(program.hosts), dtype=bool))
    lanes = least_hop_lanes(tables, one, other)
    settings = replace(PRESETS["fdr"].settings, lanes=lanes, hop_lanes=lanes)
    return float(run(tables, [program], hosts=hosts, settings=settings).job_seconds[0])
