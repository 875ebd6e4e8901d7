"""The systems measured by Subramoni ("Topology-Aware MPI Communication and Scheduling", 2013), by name.

Each function's docstring names the details that the source does not give, and the choices made here. Latencies stay
unknown. SDR, DDR, QDR and FDR are InfiniBand link rates; 5:4 is the over-subscription of the leaf switches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..fabric import Fabric, infiniband_rate
from .blueprint import Blueprint, Cables, cables
from .trees import draw_fat_tree, fat_tree

__all__ = ["PRESETS", "glenn", "hyperion", "ranger", "slurm64", "stampede"]


def ranger() -> Fabric:
    """Ranger: 3,936 hosts, SDR, two 3,456-port switches; hop counts 1, 3, 5, 7.

    Not given by the source, and chosen here: the chips. A 3,456-port switch consists of 24-port chips in five stages,
    and leaf chips of 12 hosts are outside of it. Two switches of 12 x 12 x 24 ports each take half of every leaf's 12
    up-links: sub-trees of two leaves, each wired by 6 parallel cables to one chip of each switch, then two more levels
    of full bisection.
    """
    tree = ((12, 2, 12, 24), (1, 2, 12, 12), (1, 6, 1, 1))
    return fat_tree(*tree, hosts=3936, rate=infiniband_rate("4xSDR"), name="ranger")


def stampede() -> Fabric:
    """Stampede: 6,400 hosts, FDR, 5:4 leaves under eight 648-port directors; hop counts 1, 3, 5.

    Not given by the source, and chosen here: the wiring. Each leaf of 20 hosts has 16 up-links, two to one line chip of
    each of the eight directors; a director has 36 line chips of 18 outer ports, each for 9 leaves, and 18 spine chips
    of 36 ports.
    """
    tree = ((20, 9, 36), (1, 8, 18), (1, 2, 1))
    return fat_tree(*tree, hosts=6400, rate=infiniband_rate("4xFDR"), name="stampede")


def hyperion() -> Fabric:
    """Hyperion: 175 hosts (1,400 cores, 8 per host), QDR, 11 leaves of 16 ports; hop counts 1, 3.

    Not given by the source, and chosen here: the cables between leaves. Full bisection is assumed because no
    over-subscription is reported: 16 up-links per leaf, two to each of 8 spines. The last leaf has 15 hosts.
    """
    return fat_tree((16, 11), (1, 8), (1, 2), hosts=175, rate=infiniband_rate("4xQDR"), name="hyperion")


def glenn() -> Fabric:
    """Glenn: a tree of 877 SDR hosts and one of 650 DDR hosts, joined at the spines; hop counts up to 4.

    Not given by the source, and chosen here: everything except the hosts. The source's total, 1,624, is 97 hosts more
    than the two trees have; these 97 are left out because the source does not describe them. 24-port chips form leaves
    of 12 hosts and 12 up-links, one to each of 12 spines; a spine is a large switch with a port for every leaf. Spine i
    of one tree and spine i of the other have one cable at the rate of the slower tree, so a route between the trees
    crosses four switches.
    """
    slow, fast = infiniband_rate("4xSDR"), infiniband_rate("4xDDR")
    sdr = draw_fat_tree((12, 74), (1, 12), (1, 1), hosts=877, rate=slow, label="SDR-L")
    ddr = draw_fat_tree((12, 55), (1, 12), (1, 1), hosts=650, rate=fast, label="DDR-L")
    both = sdr.combined_with(ddr)
    spine = np.arange(12)  # the last 12 switches of each tree
    sdr_spines = both.num_hosts + len(sdr.switch_names) - 12 + spine
    ddr_spines = both.num_hosts + len(both.switch_names) - 12 + spine
    joint = cables(sdr_spines, ddr_spines, 74 + 1, 55 + 1, slow)
    return Blueprint(both.num_hosts, both.switch_names, Cables.join([both.cables, joint])).build("glenn")


def slurm64() -> Fabric:
    """The Slurm test cluster: 64 hosts, QDR, a 5:4 over-subscribed fat tree; hop counts 1, 3.

    Not given by the source, and chosen here: the leaves. 36-port chips with 20 hosts and 16 up-links, as in Stampede,
    form four leaves (the last with 4 hosts) under two spines with 8 cables from each leaf.
    """
    return fat_tree((20, 4), (1, 2), (1, 8), hosts=64, rate=infiniband_rate("4xQDR"), name="slurm64")


PRESETS: Mapping[str, Callable[[], Fabric]] = {
    "ranger": ranger,
    "stampede": stampede,
    "hyperion": hyperion,
    "glenn": glenn,
    "slurm64": slurm64,
}
