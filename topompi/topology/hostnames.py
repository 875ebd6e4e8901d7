"""Matching of host names between jobs and fabrics that spell them differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import HostError

if TYPE_CHECKING:
    from .fabric import Fabric, IntArray

__all__ = ["find_hosts", "hosts_apart", "parts_of", "require_hosts", "require_joined"]


def find_hosts(fabric: Fabric, names: Sequence[str]) -> IntArray:
    """Find the fabric's host for each name: host numbers of shape (names,), -1 for a name that matches no host.

    The rules are those of `topompi.inputs.hostlist.HostNames`.
    """
    return np.array([fabric.host_names.find(name) for name in names], dtype=np.int32)


def require_hosts(fabric: Fabric, names: Sequence[str], source: str = "") -> IntArray:
    """Host number of each name, shape (names,).

    :param fabric: the fabric.
    :param names: host names.
    :param source: name of the fabric in errors; empty for its own name.
    :raises HostError: if names match no host of the fabric; the message contains the first five of these names.
    """
    numbers = find_hosts(fabric, names)
    absent = [name for name, number in zip(names, numbers, strict=True) if number < 0]
    if absent:
        some = ", ".join(absent[:5]) + (", ..." if len(absent) > 5 else "")
        example = ", ".join(fabric.hosts[:3])
        raise HostError(
            f"{source or fabric.name}: expecting some of its {fabric.num_hosts} hosts ({example}, ...), "
            f"but {len(absent)} of {len(names)} are not: {some}"
        )
    return numbers


def require_joined(fabric: Fabric, names: Sequence[str]) -> None:
    """Raise an error if hosts are in different connected components of the fabric.

    :raises HostError: with the first five hosts outside of the component that has most of the hosts.
    """
    apart = hosts_apart(fabric, names)
    if apart:
        some = ", ".join(apart[:5]) + (", ..." if len(apart) > 5 else "")
        raise HostError(
            f"{fabric.name}: expecting hosts of one part, got {some}, which no links join to the others: choose --hosts"
        )


def parts_of(fabric: Fabric, host: int) -> set[int]:
    """Numbers of the connected components of the fabric in which a host has adapters."""
    leaves = fabric.adapter_leaf[fabric.host_adapters[host]]
    return set(fabric.switch_component[leaves[leaves >= 0]].tolist())


def hosts_apart(fabric: Fabric, names: Sequence[str]) -> list[str]:
    """The named hosts outside of the connected component of the fabric that has most of the named hosts.

    :param fabric: the whole fabric.
    :param names: host names; names that match no host are left out.
    """
    numbers = find_hosts(fabric, names)
    parts = [parts_of(fabric, number) for number in numbers[numbers >= 0].tolist()]
    count = Counter(part for of_host in parts for part in of_host)
    most = max(count, key=lambda part: count[part], default=-1)
    known = [name for name, number in zip(names, numbers, strict=True) if number >= 0]
    return [name for name, of_host in zip(known, parts, strict=True) if most not in of_host]
