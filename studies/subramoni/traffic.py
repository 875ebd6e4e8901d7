"""Figures 5.6 and 8.5: traffic of an AWP-ODC-like stencil by the distance that it travels."""

from __future__ import annotations

from topompi.machine.interference.kernels.halo import Stencil3D
from topompi.mapping import Evaluation

from .figure import Figure
from .jobs import allocated
from .ranking import best_block, evaluations, hops

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figures 5.6, 8.5: AWP-ODC-like stencil, share of traffic by hops"
PAPER = "share inside hosts 33 % to 66 % (1,024 processes, Ranger); 33 % to 57 % (512 processes, Slurm cluster)"


def draw(full: bool) -> Figure:
    """Make the figure from mappings at the reference's scale; ``full`` has no effect."""
    cases = (
        ("1,024 processes, Ranger-like, 64 hosts x 16", Stencil3D((8, 8, 16)), allocated("ranger", 64, 16, among=1024)),
        ("512 processes, Slurm cluster, 64 hosts x 8", Stencil3D((8, 8, 8)), allocated("slurm64", 64, 8, among=64)),
    )
    tables, said = [], []
    for caption, kernel, interface in cases:
        found = evaluations(interface, kernel)
        slots = kernel.ranks // interface.num_hosts
        tables.append(hops(found, f"{caption}, grid {kernel.shape}:"))
        said.append(f"{kernel.ranks:,} processes: {_judged(found, best_block(kernel, slots))}")
    return Figure(
        "; ".join(said),
        tuple(tables),
    )


def _judged(found: dict[str, Evaluation], block: tuple[tuple[int, ...], float]) -> str:
    share = {name: one.intra_share for name, one in found.items()}
    shape, most = block
    return (
        f"inside hosts {share['given']:.1%} in the given order, {share['best']:.1%} ours by hop-bytes, "
        f"{share['busiest']:.1%} by the busiest link, {share['scheme2']:.1%} scheme 2; the best block "
        f"({' x '.join(map(str, shape))}) has {most:.1%}"
    )
