"""A function that runs all simulations of one collective, several at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from topompi.errors import BenchmarkError
from topompi.schedules import ScheduleError
from topompi.schedules.registry import find_algorithm
from topompi.schedules.schedule import ROOTED
from topompi.schedules.segments import cut

from .ground import Failure, Ground
from .table import Findings, Timing

__all__ = ["study"]

Progress = Callable[[str, int, int], None]
Place = tuple[str, int]


def study(
    arena: Ground,
    collective: str,
    algorithms: Sequence[str],
    peers: Sequence[str],
    sizes: Sequence[int],
    *,
    root: int = 0,
    window: int | None = None,
    jobs: int = 2,
    progress: Progress = lambda what, done, total: None,
) -> Findings:
    """Time topompi's algorithms and other MPI libraries (peers) at several sizes.

    :param arena: the simulated network.
    :param collective: name of the collective.
    :param algorithms: names of topompi's algorithms.
    :param peers: names of other libraries.
    :param sizes: message sizes in bytes.
    :param root: root of a rooted collective.
    :param window: number of steps in flight, for algorithms with this parameter; if it is None, their own number.
    :param jobs: number of simultaneous simulations; each takes a processor and the memory of one schedule.
    :param progress: function that shows the latest simulation's name, the number of finished simulations, and the
        number of all.
    :raises BenchmarkError: if the root is not a rank.
    """
    if collective in ROOTED and not 0 <= root < arena.network.num_ranks:
        raise BenchmarkError(f"--root: expecting a rank in range({arena.network.num_ranks}), got {root}")
    pool = ThreadPoolExecutor(jobs)
    outcomes: dict[Place, Timing] = {}
    try:
        tasks: dict[Future[list[tuple[Place, Timing]]], str] = {}
        for name in algorithms:
            tasks[pool.submit(_algorithm, arena, collective, name, tuple(sizes), root, window)] = name
        for name in peers:
            for size in sizes:
                tasks[pool.submit(_peer, arena, collective, name, size, root)] = f"{name} {size}"
        for done, task in enumerate(as_completed(tasks), 1):
            outcomes.update(task.result())
            progress(tasks[task], done, len(tasks))
    except BaseException:  # also on an interrupt, so that running simulations are ended and not waited for
        pool.shutdown(wait=False, cancel_futures=True)
        arena.close()
        raise
    pool.shutdown()
    bounds = {size: _bound(arena, collective, size, root) for size in sizes}
    # Sorted in the order of the table, not of completion, so that every run prints the same.
    outcomes = {(side, size): outcomes[side, size] for side in (*algorithms, *peers) for size in sizes}
    return Findings(tuple(sizes), tuple(algorithms), tuple(peers), outcomes, bounds)


def _algorithm(
    arena: Ground, collective: str, name: str, sizes: Sequence[int], root: int, window: int | None
) -> list[tuple[Place, Timing]]:
    """Return the times of an algorithm, one size after the other, because each holds the memory of a schedule."""
    chosen = find_algorithm(collective, cut(name)[0])
    takes = window is not None and "window" in chosen.parameters
    parameters = {"window": window} if takes else {}
    return [((name, size), _time(arena, collective, name, size, root, parameters)) for size in sizes]


def _time(arena: Ground, collective: str, name: str, size: int, root: int, parameters: dict[str, int | None]) -> Timing:
    ranks, most = arena.network.num_ranks, 4 * arena.most_messages
    if collective in ("alltoall", "fft") and ranks**2 > most:  # too many messages even to generate the schedule
        return Failure(f"left out: {ranks:,} ranks exchange {ranks**2:,} blocks, more than {most:,}")
    try:
        made = arena.schedule(collective, name, size, root, **parameters)
    except ScheduleError as error:  # the schedule of a user's file or function is wrong
        raise BenchmarkError(f"--algorithm: {error}") from error
    except ValueError as error:  # a generator refuses, for example, a number of ranks that is not a power of two
        return Failure(f"left out: {error}")
    return arena.time(made.schedule, made.block_bytes, made.slices)


def _peer(arena: Ground, collective: str, name: str, size: int, root: int) -> list[tuple[Place, Timing]]:
    return [((name, size), arena.peer(name, collective, size, root))]


def _bound(arena: Ground, collective: str, size: int, root: int) -> float:
    return 0.0 if collective == "fft" else arena.bound(collective, size, root)
