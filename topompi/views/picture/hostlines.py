"""Lines of text below a leaf switch: its hosts with a job's ranks, or their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...inputs.figures import cut_middle
from .names import fitting, further, ranges

__all__ = ["host_lines"]


def host_lines(
    names: Sequence[str],
    ranks: Mapping[int, Sequence[int]],
    shown: Sequence[int],
    every: int,
    one_by_one: bool,
    most: int,
) -> list[str]:
    """Return the lines of text below a leaf switch: names of hosts with their ranks, or numbers of hosts and ranks.

    :param names: names of all hosts of the fabric.
    :param ranks: host number -> its ranks, for the hosts of the job that have ranks.
    :param shown: numbers of the leaf's hosts that belong to the job, or of all its hosts without a job.
    :param every: number of hosts of the leaf.
    :param one_by_one: whether each host has a line of its own.
    :param most: number of letters that a line has room for.
    """
    total = f"{every:,} host{'s' * (every != 1)}"
    if not shown:
        return [fitting(most, total, f"{every:,}")] if every else []
    if not one_by_one:
        mine = sorted(rank for host in shown for rank in ranks.get(host, ()))
        part = f"{len(shown):,} of {every:,}"
        counts = [total] if len(shown) == every else [f"{part} hosts", part, part.replace(" of ", "/")]
        lines = [fitting(most, *counts, f"{len(shown):,}")]
        lines.append(cut_middle(names[shown[0]], most))
        lines += [further(len(shown) - 1, most)] if len(shown) > 1 else []
        return lines + ([fitting(most, f"ranks {ranges(mine)}", f"{len(mine):,} ranks")] if mine else [])
    lines = []
    for host in shown:
        name, own = names[host], ranges(ranks.get(host, ()))
        whole = f"{name}: {own}" if own else name
        count = f"{len(ranks.get(host, ())):,} ranks"
        lines += [whole] if len(whole) <= most or not own else [cut_middle(name, most), fitting(most, own, count)]
    return [cut_middle(line, most) for line in lines] + (
        [further(every - len(shown), most)] if every > len(shown) else []
    )
