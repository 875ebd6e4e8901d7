"""The share of a stencil's traffic that mapping brings inside hosts, compared with the best shape of blocks."""

from __future__ import annotations

from osu_like_bench.kernels import Kernel
from topompi.machine.interference.kernels.halo import Stencil3D, Stencil4D
from topompi.topology import TopologyInterface, load_routes

from .figure import Figure, Table
from .jobs import allocated, view
from .ranking import best_block, evaluations

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Inside hosts: share of a stencil's traffic before and after mapping"
PAPER = "3D stencil of 512 processes 33 % to 57 %; AWP-ODC, 1,024 processes, 33 % to 66 %"
ORDERS = ("given", "cyclic", "cartesian", "scheme2", "best")


def draw(full: bool) -> Figure:
    """Make the figure at a single scale; ``full`` has no effect."""
    rows = []
    for kernel, slots in (
        (Stencil3D((8, 8, 8)), 8),
        (Stencil3D((16, 8, 8)), 16),
        (Stencil3D((8, 8, 16)), 16),
        (Stencil4D((8, 8, 4, 4)), 16),
        (Stencil4D((8, 8, 4, 4), periodic=True), 16),
    ):
        for leaves, interface in _machines(slots).items():
            rows.append(_row(kernel, slots, leaves, interface))
    heads = ("grid", "hosts x slots", "leaves", *ORDERS, "best block", "its share", "best / best block")
    short = min(rows, key=lambda row: float(row[-1]))
    return Figure(
        f"by hop-bytes, which a communicator uses, {short[-1]} of the share of the best block or more: least on "
        f"{short[0]} with leaves of {short[2]}",
        (Table(heads, tuple(rows)),),
    )


def _machines(slots: int) -> dict[str, TopologyInterface]:
    return {
        "16 hosts": view(load_routes("XGFT(2; 16,4; 1,16)"), range(64), slots),
        "20 hosts": allocated("slurm64", 64, slots, among=64),
        "12, scattered": allocated("ranger", 64, slots, among=1024),
    }


def _row(kernel: Kernel, slots: int, leaves: str, interface: TopologyInterface) -> tuple[str, ...]:
    found = evaluations(interface, kernel, ORDERS)
    shape, most = best_block(kernel, slots)
    return (
        f"{kernel.shape}{' periodic' if kernel.periodic else ''}",
        f"64 x {slots}",
        leaves,
        *(f"{found[name].intra_share:.1%}" for name in ORDERS),
        "x".join(map(str, shape)),
        f"{most:.1%}",
        f"{found['best'].intra_share / most:.3f}",
    )
