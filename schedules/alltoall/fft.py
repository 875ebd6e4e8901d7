"""The alltoalls of a pencil FFT: all rows of the process grid at once, then all columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from .bound import schedule_transfers
from .hostschedule import HostSchedule

__all__ = ["Pencils", "pencils"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pencils:
    """Schedules of a process grid whose rank r * columns + c stands at (r, c).

    The schedules of all rows have the same steps: what they do in one step may run at the same time. So have those of
    all columns.

    :param rows: alltoall of each row of ranks; within row r the rank at (r, c) is rank c.
    :param columns: alltoall of each column of ranks; within column c the rank at (r, c) is rank r.
    """

    rows: tuple[HostSchedule, ...]
    columns: tuple[HostSchedule, ...]


def pencils(network: Network, rows: int, columns: int, *, blocks: int = 1, seed: int = 1) -> Pencils:
    """Alltoalls within rows and within columns of a process grid such that concurrent ones do not meet on a link.

    The exchanges of all rows are scheduled together between hosts, as ``bound`` does it: in a step a host sends to one
    host and receives from one, whatever the row, and no link between switches is shared by two pairs of hosts. Rows
    with ranks on the same two hosts exchange in the same step. Likewise the columns. Step 0 is inside the hosts.

    :param rows: of the process grid; ``rows * columns`` ranks in all.
    :param blocks: blocks of one message.
    :param seed: of the choices among equals.
    :raises ValueError: if the grid has not as many places as there are ranks, or two hosts have no route.
    Cost: each rank sends columns - 1 messages in rows, rows - 1 in columns; some 3 microseconds a pair of hosts.
    """
    if rows < 1 or columns < 1 or rows * columns != network.num_ranks:
        raise ValueError(f"expecting a grid of {network.num_ranks} ranks, got {rows} x {columns}")
    hosts = network.rank_host.reshape(rows, columns)
    return Pencils(
        rows=_together(network, hosts, "fft rows", blocks, seed),
        columns=_together(network, hosts.T, "fft columns", blocks, seed),
    )


def _together(network: Network, hosts: Integers, name: str, blocks: int, seed: int) -> tuple[HostSchedule, ...]:
    """Alltoalls of groups that run at the same time.

    :param hosts: host of each rank of each group, shape (groups, ranks).
    """
    ranks = np.zeros((len(hosts), network.num_hosts), dtype=np.int64)
    np.add.at(ranks, (np.arange(len(hosts))[:, None], hosts), 1)
    present = ranks > 0
    meet = present.T.astype(np.float32) @ present.astype(np.float32) > 0
    np.fill_diagonal(meet, False)
    source, destination = np.nonzero(meet)
    step = np.zeros(meet.shape, dtype=np.int64)  # inside the hosts: 0
    step[source, destination] = 1 + schedule_transfers(network, source, destination, seed=seed)
    listed = [_rows(np.flatnonzero(of_group), step) for of_group in present]
    # As many rounds in each step as the group that needs the most, or else steps would not stay side by side.
    rounds = np.zeros(int(step.max(initial=0)) + 1, dtype=np.int64)
    for of_group, (at, sender, receiver) in zip(ranks, listed, strict=True):
        np.maximum.at(rounds, at, np.maximum(of_group[sender], of_group[receiver]))
    return tuple(
        HostSchedule(name, of_group.copy(), *columns, rounds, blocks)
        for of_group, columns in zip(hosts, listed, strict=True)
    )


def _rows(hosts: NDArray[np.intp], step: Integers) -> tuple[Integers, Integers, Integers]:
    """Step, source and destination of all pairs of some hosts, by step."""
    source, destination = (axis.ravel() for axis in np.meshgrid(hosts, hosts, indexing="ij"))
    at = step[source, destination]
    order = np.argsort(at, kind="stable")
    return at[order], source[order], destination[order]
