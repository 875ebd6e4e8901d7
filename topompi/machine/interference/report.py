"""The figures of replays as rows, by job, by shared link and by pair of jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...netsim import Program
from .network import SharedNetwork
from .replay import ReplayTimes, effectiveness

__all__ = ["job_rows", "link_rows", "pair_rows", "summary"]

Rows = list[dict[str, object]]
FIGURES = {
    "base": "seconds alone on a crossbar",
    "alone": "seconds alone on the network",
    "sharing": "seconds beside the others",
    "intra": "alone - base",
    "inter": "sharing - alone",
    "normalised": "sharing / base",
}


def job_rows(draws: Sequence[ReplayTimes]) -> Rows:
    """A row per job with the mean of each figure over draws of a placement, and its standard deviation.

    :param draws: outcomes of the same jobs; with one, there are no deviations.
    """
    rows: Rows = []
    for job, name in enumerate(draws[0].names):
        row: dict[str, object] = {"job": name, "nodes": int(draws[0].nodes[job])}
        for figure in FIGURES:
            values = np.array([getattr(one, figure)[job] for one in draws])
            row[figure] = float(values.mean())
            if len(draws) > 1:
                row[f"{figure}_deviation"] = float(values.std(ddof=1))
        row["runs"] = float(np.mean([len(one.runs[job].ends) for one in draws]))
        rows.append(row)
    return rows


def summary(placement: str, draws: Sequence[ReplayTimes], reference: Sequence[ReplayTimes]) -> dict[str, object]:
    """The figures of a placement.

    :param placement: text of the placement.
    :param draws: its outcomes.
    :param reference: outcomes of the placement with which it is compared; draw i is compared with draw i, the only draw
        with all.
    """
    pairs = [(reference[min(at, len(reference) - 1)], one) for at, one in enumerate(draws)]
    ratios = [effectiveness(*pair) for pair in pairs]
    known = [one for one in ratios if one is not None]
    return {
        "placement": placement,
        "draws": len(draws),
        "wasted": float(np.mean([one.wasted for one in draws])),
        "effectiveness": float(np.mean(known)) if len(known) == len(ratios) else None,
        "jobs": job_rows(draws),
        "runs": [[run.ends.tolist() for run in one.runs] for one in draws],
        "groups": [[[one.names[job] for job in group] for group in one.groups] for one in draws],
    }


def link_rows(network: SharedNetwork, programs: Sequence[Program]) -> Rows:
    """A row per link that several jobs use, with the time that the link needs for a run of each; the busiest first.

    :param network: the network.
    :param programs: program of each job.
    """
    loads = network.link_bytes(programs)
    shared = np.flatnonzero((loads > 0).sum(axis=0) > 1)
    times = loads / network.tables.rate
    order = shared[np.argsort(-times[:, shared].sum(axis=0), kind="stable")]
    rows: Rows = []
    for link in order.tolist():
        users = np.flatnonzero(loads[:, link]).tolist()
        row: dict[str, object] = {"link": network.link_name(link), "jobs": [programs[job].name for job in users]}
        row |= {"bytes": float(loads[:, link].sum()), "time": float(times[:, link].sum())}
        row["time_of_each"] = {programs[job].name: float(times[job, link]) for job in users}
        rows.append(row)
    return rows


def pair_rows(
    network: SharedNetwork, programs: Sequence[Program], outcome: ReplayTimes, delays: NDArray[np.float64]
) -> Rows:
    """A row per job and other job that delays it, the longest delay first.

    :param network: the network.
    :param programs: program of each job.
    :param outcome: outcome of the jobs.
    :param delays: result of ``pairwise_delays``.
    """
    uses = np.array([network.uses(program) for program in programs])
    rows: Rows = []
    for job, other in zip(*np.unravel_index(np.argsort(-delays, axis=None, kind="stable"), delays.shape), strict=True):
        common = int((uses[job] & uses[other]).sum())
        if job != other and common:
            delay = float(delays[job, other])
            share = delay / float(outcome.alone[job])
            names = {"job": outcome.names[job], "delayed_by": outcome.names[other]}
            rows.append({**names, "links": common, "delay": delay, "of_alone": share})
    return rows
