"""Figures 6.2 and 8.2: the cost of up-links of a leaf switch that hosts of one job share."""

from __future__ import annotations

from studies.simgrid import Arena
from topompi.schedules import Network
from topompi.topology import load_routes

from .contest import Contest, Row, gain, run
from .figure import Figure, Table
from .jobs import job, view
from .models import Case, of_schedules, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figures 6.2, 8.2: link sharing, alltoall on 64 and 128 processes, Stampede-like"
PAPER = "sharing links costs 15 % (64 processes on 4 hosts) and 21 % (128 on 8)"
OURS = ("tacs1", "tacs2", "even", "at_once", "colouring")
RANKS, LEAF, UPLINKS = 16, 20, 16
SIZES = (1 << 14, 1 << 18)


def draw(full: bool) -> Figure:
    """Make the figure from simulations at the reference's scale; ``full`` has no effect."""
    routes = load_routes("stampede")
    rows, ours, bounds = [], [], []
    for hosts in (4, 8):
        for size in SIZES:
            shared, separate = (_time(job(routes, _hosts(hosts, share), RANKS), size) for share in (True, False))
            ours.append(shared.best_ours[1] / separate.best_ours[1])
            bounds.append(shared.bound / separate.bound)
            rows.append(
                (
                    f"{hosts * RANKS} on {hosts}",
                    f"{size}",
                    gain(shared.baseline, separate.baseline),
                    gain(shared.best_peer[1], separate.best_peer[1]),
                    gain(shared.best_ours[1], separate.best_ours[1]),
                    f"{shared.bound / separate.bound:.2f}x",
                    gain(shared.best_peer[1], shared.best_ours[1]),
                )
            )
    heads = (
        "processes on hosts",
        "bytes",
        "pairwise: shared / apart",
        "best peer: shared / apart",
        "our best: shared / apart",
        "bound: shared / apart",
        "shared: our best / best peer",
    )
    return Figure(
        f"sharing costs our best {min(ours) - 1:.0%} to {max(ours) - 1:.0%}, where the routes force "
        f"{min(bounds) - 1:.0%} to {max(bounds) - 1:.0%} on any schedule (the bound's ratio)",
        (Table(heads, tuple(rows), "How many times longer an alltoall takes where hosts share links:"), models()),
    )


def models() -> Table:
    """Return a table of pairwise exchange and `even`, with links shared and not, under flows and under packets."""
    routes, size = load_routes("stampede"), SIZES[0]
    return table_of_models(
        "16 KiB, default pairwise",
        (
            Case(
                f"{hosts * RANKS} on {hosts}, {'shared' if share else 'apart'}",
                view(routes, _hosts(hosts, share), RANKS),
                of_schedules("alltoall", size, "pairwise", "even"),
            )
            for hosts in (4, 8)
            for share in (True, False)
        ),
    )


def _hosts(count: int, share: bool) -> list[int]:
    """Choose hosts, half of them on each of the first two leaves.

    :param count: number of hosts.
    :param share: whether the hosts form pairs that share an up-link of their leaf; else each has its own up-link.
    """
    half = count // 2
    first = [pair + UPLINKS * other for pair in range(half // 2) for other in (0, 1)] if share else list(range(half))
    return [*first, *(LEAF + host for host in first)]


def _time(network: Network, size: int) -> Row:
    with Arena(network) as arena:
        return run([("", size, Contest(arena, "alltoall", size, OURS, "pairwise"))])[0]
