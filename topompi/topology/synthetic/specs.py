"""Specifications of synthetic fabrics, which users type in place of a file name.

    ranger, stampede, hyperion, glenn, slurm64      systems measured by Subramoni 2013
    xgft:20,16;1,16   XGFT(2; 20,16; 1,16)          fat tree: children; parents, one number per level
    XGFT(3; 20,9,36; 1,8,18; 1,2,1)@hosts=6400      with cables to each parent, and only the first hosts
    kary:4,3                                        k-ary n-tree
    torus:4x4x4@hosts_per_switch=2                  torus
    torus:4x4x4@ports=6                             torus whose hosts can fill six links at the same time
    dragonfly:4,2,2   dragonfly:4,2,2,5             routers per group, hosts and global links per router, groups
    dragonfly+:4,4,2,1  dragonfly+:18,18,10,22,23   leaf switches and spines per group, hosts per leaf, global links per
                                                    spine, groups

Options follow an ``@``, separated by commas; every formula takes ``rate`` (such as ``4xFDR``) and ``rails``, the number
of equal planes in each of which a host has an adapter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import FabricError, SourceError
from ..fabric import Fabric, infiniband_rate
from .dragonfly import dragonfly, dragonfly_plus
from .presets import PRESETS
from .torus import torus
from .trees import fat_tree, k_ary_n_tree

__all__ = ["SPEC_HELP", "from_spec", "recognise_spec"]

SPEC_HELP = ", ".join([*PRESETS, "xgft:20,16;1,16", "kary:4,3", "torus:4x4x4", "dragonfly:4,2,2", "dragonfly+:4,4,2,1"])
_SPEC = re.compile(r"\s*(xgft|pgft|kary|torus|dragonfly\+?)\s*[:(]", re.IGNORECASE)
_TREE = re.compile(r"(?:xgft|pgft)\s*(?::(?P<bare>[^()]*)|\((?P<height>[^;()]*);(?P<lists>[^()]*)\))\s*", re.IGNORECASE)


def recognise_spec(source: str) -> bool:
    """Whether the user's text has the form of a synthetic fabric, valid or not, and not of a file name."""
    return source.strip().lower() in PRESETS or _SPEC.match(source) is not None


def from_spec(source: str) -> Fabric:
    """Make the fabric that a specification describes; the specification becomes its name.

    :raises SourceError: if the specification is malformed, or a generator refuses its numbers.
    """
    preset = PRESETS.get(source.strip().lower())
    if preset is not None:
        return preset()
    match = _SPEC.match(source)
    if match is None:
        raise SourceError(f"{source}: expecting a synthetic fabric ({SPEC_HELP})")
    formula, _, options = source.strip().partition("@")
    make, allowed = _FAMILIES[match[1].lower()]
    try:
        given = _options(options, (*allowed, "rails"))
        rails = given.pop("rails", 1)
        made = make(formula.strip(), **given, name=source.strip())
        if rails == 1:
            return made
        from .rails import with_rails  # imported late because few fabrics have several planes

        return with_rails(made, rails)
    except FabricError as error:
        raise SourceError(f"{source}: {error}") from error


def _tree(formula: str, **options: Any) -> Fabric:
    match = _TREE.fullmatch(formula)
    if match is None:
        raise FabricError("expecting XGFT(height; children; parents) or xgft:children;parents")
    lists = [_integers(part, ",") for part in (match["bare"] or match["lists"] or "").split(";")]
    if len(lists) not in (2, 3):
        raise FabricError(f"expecting children; parents, or children; parents; cables, got {len(lists)} list(s)")
    if match["height"] is not None and _integers(match["height"], ",") != [len(lists[0])]:
        raise FabricError(f"expecting {match['height'].strip()} level(s), got {len(lists[0])} numbers of children")
    return fat_tree(lists[0], lists[1], lists[2] if len(lists) == 3 else None, **options)


def _kary(formula: str, **options: Any) -> Fabric:
    k, n = _counted(formula, "k,n", 2)
    return k_ary_n_tree(k, n, **options)


def _torus(formula: str, **options: Any) -> Fabric:
    return torus(_integers(formula.partition(":")[2], "x"), **options)


def _dragonfly(formula: str, **options: Any) -> Fabric:
    routers, hosts, links, *groups = _counted(formula, "routers,hosts,links[,groups]", 3, 4)
    return dragonfly(routers, hosts, links, groups[0] if groups else None, **options)


def _dragonfly_plus(formula: str, **options: Any) -> Fabric:
    leaves, spines, hosts, links, *groups = _counted(formula, "leaves,spines,hosts,links[,groups]", 4, 5)
    return dragonfly_plus(leaves, spines, hosts, links, groups[0] if groups else None, **options)


_FAMILIES: Mapping[str, tuple[Callable[..., Fabric], tuple[str, ...]]] = {
    "xgft": (_tree, ("hosts", "rate")),
    "pgft": (_tree, ("hosts", "rate")),
    "kary": (_kary, ("hosts", "rate")),
    "torus": (_torus, ("hosts_per_switch", "ports", "rate")),
    "dragonfly": (_dragonfly, ("rate",)),
    "dragonfly+": (_dragonfly_plus, ("rate",)),
}


def _counted(formula: str, form: str, *counts: int) -> Sequence[int]:
    numbers = _integers(formula.partition(":")[2], ",")
    if len(numbers) not in counts:
        raise FabricError(f"expecting {form}, got {len(numbers)} number(s)")
    return numbers


def _integers(text: str, separator: str) -> list[int]:
    parts = [part.strip() for part in text.split(separator)]
    for part in parts:
        if not re.fullmatch(r"-?[0-9]{1,18}", part):
            raise FabricError(f"expecting whole numbers separated by {separator!r}, got {text.strip()!r}")
    return [int(part) for part in parts]


def _options(text: str, allowed: Sequence[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in allowed or not equals or key in options:
            raise FabricError(f"expecting options of {', '.join(allowed)}, each once, as key=value, got {part!r}")
        options[key] = _rate(value) if key == "rate" else _integers(value, ",")[0]
    return options


def _rate(text: str) -> float:
    rate = infiniband_rate(text)
    if not rate > 0:  # also true for NaN, an unknown name
        raise FabricError(f"expecting a rate such as 4xQDR, got {text!r}")
    return rate
