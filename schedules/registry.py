"""The functions that find algorithms by collective and name, and make their schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .algorithm import FORMER_NAMES, Algorithm, current_name
from .alltoall.hostschedule import HostSchedule
from .network import Network
from .schedule import ROOTED, Schedule
from .slowhosts import standing_aside
from .swing import ranks_on_grid
from .table import ALGORITHMS

__all__ = [
    "ALGORITHMS",
    "FORMER_NAMES",
    "RankSchedule",
    "current_name",
    "find_algorithm",
    "make",
    "properties",
    "register",
    "rows_of",
    "suited",
]

_RESERVED = ("all", "native")  # words with another meaning in lists of algorithms


def find_algorithm(collective: str, name: str) -> Algorithm:
    """The algorithm of a name.

    :param collective: a key of ``ALGORITHMS``.
    :param name: a key of ``ALGORITHMS[collective]``, its former name, a key of ``LIBRARY_ALGORITHMS[collective]``, a
        ``module:function``, or the path of a schedule's file, see ``given``.
    :raises ValueError: if the collective or name is unknown, or the function cannot be imported.
    """
    _require_collective(collective)
    if current_name(name) in ALGORITHMS[collective]:
        return ALGORITHMS[collective][current_name(name)]
    if name.endswith(".json") or ":" in name:
        from .given import given  # imported late because it imports the proof, and all ranks wait for imports

        return given(collective, name)
    from .librarylike import LIBRARY_ALGORITHMS  # imported late because few programs need it

    if name in LIBRARY_ALGORITHMS.get(collective, {}):
        return LIBRARY_ALGORITHMS[collective][name]
    names = ", ".join(ALGORITHMS[collective])
    words = f"{names}, a module:function, or a schedule's file (.json)"
    raise ValueError(f"expecting an algorithm for {collective} of {words}, got {name!r}")


def suited(collective: str, network: Network) -> list[str]:
    """The names of a collective's algorithms without those for slow hosts or tori, if the network has none.

    :param collective: a key of ``ALGORITHMS``.
    :param network: the job's network.
    """
    has = properties(network)
    return [name for name, one in ALGORITHMS[collective].items() if not one.needs or one.needs in has]


def properties(network: Network) -> frozenset[str]:
    """The properties of a network that some algorithms need (`Algorithm.needs`)."""
    has = {
        "slow hosts": bool(standing_aside(network).any()),
        "torus": network.ports > 1 or ranks_on_grid(network).ndim > 1,
        "ports": network.ports > 1,
    }
    return frozenset(name for name, there in has.items() if there)


def register(collective: str, name: str, algorithm: Algorithm) -> None:
    """Add an algorithm, which this process can then use by name, and which takes part in the choice of algorithms.

    In an MPI program all ranks must register the same algorithms before they make communicators. ``check`` proves a
    schedule; schedules of registered algorithms are not proved again when they run.

    :param collective: a key of ``ALGORITHMS``.
    :param name: new name.
    :param algorithm: generator and properties.
    :raises ValueError: if the collective is unknown, or if the name is taken, reserved, or not one word.
    :raises TypeError: if ``algorithm`` is not an ``Algorithm``.
    """
    _require_collective(collective)
    if not isinstance(algorithm, Algorithm):
        raise TypeError(f"expecting an Algorithm, got {type(algorithm).__name__}")
    if not name or any(mark in "/," or mark.isspace() for mark in name):
        raise ValueError(f"expecting a name without '/', ',' or blanks, got {name!r}")
    from .librarylike import LIBRARY_ALGORITHMS  # imported late because few programs register algorithms

    taken = (*ALGORITHMS[collective], *LIBRARY_ALGORITHMS.get(collective, {}))
    if name in (*_RESERVED, *FORMER_NAMES, *taken):
        raise ValueError(f"expecting a name that is not taken for {collective}, got {name!r}")
    ALGORITHMS[collective][name] = algorithm


def _require_collective(collective: str) -> None:
    if collective not in ALGORITHMS:
        raise ValueError(f"expecting a collective of {', '.join(ALGORITHMS)}, got {collective!r}")


@dataclass(frozen=True, eq=False)
class RankSchedule:
    """One rank's part of a schedule.

    :param rank: the rank.
    :param rows: rows of the schedule that the rank takes part in, in the schedule's order, shape (rows, 9).
    :param blocks: number of blocks of one message.
    :param independent: whether steps may overlap, so that a rank has transfers of several steps in flight.
    :param window: largest number of steps that a rank has in flight if ``independent``; 0 for no limit.
    """

    rank: int
    rows: NDArray[np.int64]
    blocks: int
    independent: bool
    window: int


def rows_of(
    collective: str,
    algorithm: str,
    network: Network,
    rank: int,
    root: int = 0,
    blocks: int | None = None,
    **parameters: Any,
) -> RankSchedule:
    """Make one rank's part of an algorithm's schedule, without the rows of other ranks.

    :param collective: a key of ``ALGORITHMS``.
    :param algorithm: name that ``find_algorithm`` takes.
    :param network: the job's network.
    :param rank: rank whose rows are made.
    :param root: the root's rank; collectives without a root ignore it.
    :param blocks: number of blocks of one message; None for the algorithm's default number.
    :param parameters: further keyword arguments of the generator.
    :raises ValueError: if ``make`` refuses a value, or if ``rank`` is not in range(p).
    Cost: O(p) plus the rank's rows; O(p log p) or O(p x blocks) for schedules that are so short that all rows are made;
    for an `Algorithm.costly` one as much as for the whole schedule.
    """
    schedule = make(collective, algorithm, network, root, blocks, **parameters)
    return RankSchedule(rank, schedule.rows_of(rank), schedule.blocks, schedule.independent, schedule.window)


def make(
    collective: str,
    algorithm: str,
    network: Network,
    root: int = 0,
    blocks: int | None = None,
    **parameters: Any,
) -> Schedule:
    """Make the schedule of an algorithm on a network; its rows are computed when they are first read.

    :param collective: a key of ``ALGORITHMS``: one of ``COLLECTIVES``, or ``fft`` for the alltoalls of a pencil FFT.
    :param algorithm: name that ``find_algorithm`` takes.
    :param network: the job's network.
    :param root: the root's rank; collectives without a root ignore it.
    :param blocks: number of blocks of one message, see ``Schedule``; None for the algorithm's default number.
    :param parameters: further keyword arguments of the generator.
    :raises ValueError: if the collective, algorithm or a parameter is unknown, or if the generator refuses a value.
    :raises ScheduleError: if the schedule of a user's file or function is wrong.
    """
    chosen = find_algorithm(collective, algorithm)
    unknown = [name for name in parameters if name not in chosen.parameters]
    if unknown:
        names = ", ".join(chosen.parameters) or "none"
        raise ValueError(f"expecting parameters of {algorithm} ({names}), got {unknown[0]!r}")
    if collective in ROOTED and not 0 <= root < network.num_ranks:
        raise ValueError(f"expecting root in range({network.num_ranks}), got {root}")
    schedule = chosen.generate(network, root if collective in ROOTED else 0, blocks, **parameters)
    return schedule.expand() if isinstance(schedule, HostSchedule) else schedule
