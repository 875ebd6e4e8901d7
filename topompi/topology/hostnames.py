"""Which host of a fabric a name means, where jobs and fabrics spell names differently."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import HostError

if TYPE_CHECKING:
    from .fabric import Fabric, IntArray

__all__ = ["find_hosts", "require_hosts"]

_LAST_NUMBER = re.compile(r".*?(?<![0-9])([0-9]+)[^0-9]*")


def find_hosts(fabric: Fabric, names: Sequence[str]) -> IntArray:
    """Host number of each name, shape (names,), -1 for a name that is no host of the fabric.

    A name stands for itself; else a fully qualified name and its first label stand for each other, where that is one
    host; else, in a fabric whose hosts are bare numbers, as in node maps, ``lrdn0059`` and ``lrdn0059.site`` stand
    for ``0059``: the last number of the first label, zeros and all (the map does not say what comes before it).
    """
    known, by_label, numbered = fabric.host_index, fabric.host_label_index, fabric.hosts_are_numbers
    numbers = []
    for name in names:
        match = _LAST_NUMBER.fullmatch(_label(name)) if numbered else None
        by_number = known.get(match[1], -1) if match else -1
        numbers.append(known.get(name, by_label.get(_label(name), by_number)))
    return np.array(numbers, dtype=np.int32)


def require_hosts(fabric: Fabric, names: Sequence[str]) -> IntArray:
    """Host number of each name, shape (names,).

    :raises HostError: naming the first of those that are no hosts of the fabric.
    """
    numbers = find_hosts(fabric, names)
    absent = [name for name, number in zip(names, numbers, strict=True) if number < 0]
    if absent:
        some = ", ".join(absent[:5]) + (", ..." if len(absent) > 5 else "")
        example = ", ".join(fabric.hosts[:3])
        raise HostError(
            f"{fabric.name}: expecting some of its {fabric.num_hosts} hosts ({example}, ...), "
            f"but {len(absent)} of {len(names)} are not: {some}"
        )
    return numbers


def _label(name: str) -> str:
    return name.partition(".")[0]
