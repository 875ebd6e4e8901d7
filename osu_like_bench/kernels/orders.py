"""The orders of ranks that are compared: assignments of a kernel's ranks to the job's processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError
from topompi.machine.interference.kernels.kernel import Kernel
from topompi.mapping import CommunicationGraph, Machine, Mapping, best
from topompi.mapping.mappers import MAPPERS
from topompi.topology import TopologyInterface
from topompi.views.machine import machine_of

__all__ = ["ORDERS", "OTHERS", "OURS", "RankOrder", "order_of"]

Integers = NDArray[np.int64]
Mapper = Callable[[CommunicationGraph, Machine, int], Mapping]

# Orders made by topompi: by the scheme of Subramoni 2013 (section 5), by the best mapper, and by the mapper that
# reduces the time of the busiest link.
OURS: dict[str, Mapper] = {
    "scheme2": MAPPERS["scheme2"],
    "best": best,
    "busiest": partial(best, objective="busiest link"),
}
# Orders that a user has without topompi: the given one, a launcher's cyclic placement, and blocks of the grid.
OTHERS: dict[str, Mapper] = {name: MAPPERS[name] for name in ("given", "cyclic", "cartesian")}
ORDERS = {**OURS, **OTHERS}


class RankOrder:
    """An order of a kernel's ranks, which assigns each rank to a process of the job.

    :param name: name of the order.
    :param mapping: mapping of ranks to hosts.
    :param machine: machine for which the mapping was made.
    :param rank_host: host of each process, shape (ranks,).
    :ivar process: number of each rank's process in the job, shape (ranks,).
    """

    def __init__(self, name: str, mapping: Mapping, machine: Machine, rank_host: Integers) -> None:
        self.name, self.mapping, self.machine = name, mapping, machine
        # On each host, the i-th lowest rank goes to the i-th process.
        self.process = np.empty(len(rank_host), dtype=np.int64)
        self.process[np.argsort(mapping.host_of_rank, kind="stable")] = np.argsort(rank_host, kind="stable")


@lru_cache(maxsize=32)  # tables of shares and of times use the same orders
def order_of(name: str, kernel: Kernel, interface: TopologyInterface, seed: int = 0) -> RankOrder:
    """Find the order of ranks that a mapper makes for a kernel.

    :param name: name of the order, a key of ``ORDERS``; ``given`` leaves every rank on its process.
    :param kernel: kernel whose graph is mapped.
    :param interface: topology of the job.
    :param seed: seed of the mapper.
    :raises BenchmarkError: if the name is unknown, or the mapper refuses.

    Cost: a run of the mapper; ``best`` takes about a second for 1,000 ranks.
    """
    if name not in ORDERS:
        raise BenchmarkError(f"kernels: expecting an order of {', '.join(ORDERS)}, got {name!r}")
    machine, rank_host = machine_of(interface), interface.rank_host.astype(np.int64)
    try:
        given = Mapping.on_hosts(rank_host, machine)
        found = given if name == "given" else ORDERS[name](kernel.graph, machine, seed)
    except ValueError as error:
        raise BenchmarkError(f"kernels: {name}: {error}") from error
    return RankOrder(name, found, machine, rank_host)
