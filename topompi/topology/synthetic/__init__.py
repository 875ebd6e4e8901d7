"""Generators of synthetic fabrics: fat trees, tori, dragonflies, and the systems measured in Subramoni 2013."""

from .dragonfly import dragonfly
from .presets import PRESETS
from .specs import SPEC_HELP, from_spec, recognise_spec
from .torus import torus
from .trees import fat_tree, k_ary_n_tree

__all__ = [
    "PRESETS",
    "SPEC_HELP",
    "dragonfly",
    "fat_tree",
    "from_spec",
    "k_ary_n_tree",
    "recognise_spec",
    "torus",
]
