"""Generators of synthetic fabrics: fat trees, tori, dragonflies, and the systems measured in Subramoni 2013."""

from .dragonfly import dragonfly, dragonfly_plus, group_of_switches
from .presets import PRESETS
from .specs import SPEC_HELP, from_spec, recognise_spec
from .torus import torus
from .trees import fat_tree, k_ary_n_tree

__all__ = [
    "PRESETS",
    "SPEC_HELP",
    "dragonfly",
    "dragonfly_plus",
    "fat_tree",
    "from_spec",
    "group_of_switches",
    "k_ary_n_tree",
    "recognise_spec",
    "torus",
]
