"""The time that jobs stand still for the shutter: POPPA's equations 9 and 10."""

from __future__ import annotations

from topompi.machine.colocation.errors import ColocationError

__all__ = ["asleep", "dilated"]


def asleep(
    window: float, pause: float, jobs: int = 2, *, windows: int = 1, signals: float = 0.0, reads: float = 0.0
) -> float:
    """Share of the time that each job stands still: equation 9, with the costs of signals and reads.

    :param window: seconds of a window (S).
    :param pause: seconds between two shutters (P).
    :param jobs: number of jobs on the node; one job alone never stands still.
    :param windows: number of windows per region (K).
    :param signals: seconds that stopping and resuming add to a shutter.
    :param reads: further seconds that reading counters adds to a round.
    :raises ColocationError: if a time is negative, or a number below 1.
    """
    for name, value, least in (
        ("window", window, 0), ("pause", pause, 0), ("jobs", jobs, 1), ("windows", windows, 1),
        ("signals", signals, 0), ("reads", reads, 0),
    ):  # fmt: skip
        if not value >= least:
            raise ColocationError(f"{name}: expecting at least {least}, got {value!r}")
    region = windows * window
    round_seconds = 3 * region + signals + reads + pause
    return (jobs - 1) * (region + signals) / (jobs * round_seconds) if round_seconds else 0.0


def dilated(alone: float, window: float, pause: float, jobs: int = 2) -> float:
    """Run time with the shutter, in seconds: equation 10. It is an upper bound, because partners that stop help.

    :param alone: run time without the shutter, in seconds.
    :param window: seconds of a window (S).
    :param pause: seconds between two shutters (P).
    :param jobs: number of jobs on the node.
    """
    return alone / (1 - asleep(window, pause, jobs))
