"""The plain placements of ranks on hosts that launchers offer: block, cyclic and random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["place"]


def place(size: int, hosts: Sequence[str], policy: str | None = None) -> list[str]:
    """The host of each rank under a placement policy.

    :param size: number of ranks, at least 1.
    :param hosts: host names in the order in which they are filled; a repeated name is filled repeatedly.
    :param policy: ``block`` (consecutive ranks share a host, as evenly as possible; the first hosts have one rank
        more), ``cyclic`` (rank r on host r modulo the number of hosts), ``random:SEED`` (``block`` with the ranks
        shuffled by ``numpy.random.default_rng(SEED)``), or None for ``block``, which keeps the hosts as given if there
        is one per rank.
    :raises ValueError: if the policy is unknown, or there are no ranks or no hosts.
    """
    if size < 1:
        raise ValueError(f"placement: expecting at least 1 rank, got {size}")
    if not hosts:
        raise ValueError("placement: expecting at least 1 host, got none")
    return [hosts[slot] for slot in _slots(size, len(hosts), policy or "block")]


def _slots(size: int, hosts: int, policy: str) -> NDArray[np.int64]:
    """The host number of each rank, shape (size,)."""
    name, colon, seed = policy.partition(":")
    if policy == "cyclic":
        return np.arange(size) % hosts
    # The rule of numpy.array_split: the first size % hosts hosts have one rank more. With as many hosts as ranks, each
    # host has one rank, so given hosts keep their order.
    block = np.repeat(np.arange(hosts), size // hosts + (np.arange(hosts) < size % hosts))
    if policy == "block":
        return block
    if name == "random" and colon and seed.isascii() and seed.isdigit() and len(seed) < 20:
        return np.random.default_rng(int(seed)).permutation(block)
    raise ValueError(f"placement: expecting block, cyclic or random:SEED (SEED of up to 19 digits), got {policy!r}")
