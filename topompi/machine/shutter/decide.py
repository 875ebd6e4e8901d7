"""Decisions of the shutter as pure functions: when the next shutter begins, which job runs alone, which jobs pause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ShutterError

__all__ = [
    "JobState",
    "NodeSnapshot",
    "Shutter",
    "ShutterDecision",
    "ShutterSettings",
    "decide",
    "next_shutter",
    "pause_of",
]


@dataclass(frozen=True)
class ShutterSettings:
    """The parameters S, P and K of the shutter, those of long shutters, and limits.

    :ivar length: seconds of one measurement (S).
    :ivar every: mean seconds of undisturbed running between the end of a shutter's last region and the next (P).
    :ivar repeats: consecutive measurements per region (K).
    :ivar warm: seconds by which a long shutter is longer, so that the job's caches become warm; 0 for no long ones.
    :ivar warm_every: least seconds between the ends of two long shutters.
    :ivar most_stopped: seconds that the shutter may stop one job in total.
    :ivar patience: seconds within which all processes of a paused job have to stop; else the shutter is given up.
    """

    length: float = 0.00032
    every: float = 0.2
    repeats: int = 10
    warm: float = 0.04
    warm_every: float = 10.0
    most_stopped: float = math.inf
    patience: float = 0.02

    def __post_init__(self) -> None:
        for name in ("length", "every", "patience"):
            value = getattr(self, name)
            if not 0 < value < 60:
                raise ShutterError(f"expecting {name} above 0 and below 60 seconds, got {value}")
        if self.repeats < 1:
            raise ShutterError(f"expecting at least 1 repeat, got {self.repeats}")
        if not 0 <= self.warm < 60:
            raise ShutterError(f"expecting warm from 0 to below 60 seconds, got {self.warm}")
        if not self.warm_every >= 0:
            raise ShutterError(f"expecting at least 0 seconds between long shutters, got {self.warm_every}")
        if not self.most_stopped >= 0:
            raise ShutterError(f"expecting at least 0 seconds as the most time stopped, got {self.most_stopped}")

    @property
    def region(self) -> float:
        """Seconds of the measurements of one region."""
        return self.length * self.repeats


@dataclass(frozen=True)
class JobState:
    """The state of a job, as far as decisions depend on it.

    :ivar number: serial number of the job's registration; later jobs have larger numbers.
    :ivar is_running: whether the job has a process that neither ended nor was stopped by somebody else.
    :ivar stopped: seconds that the shutter has stopped the job up to now.
    """

    number: int
    is_running: bool = True
    stopped: float = 0.0


@dataclass(frozen=True)
class NodeSnapshot:
    """The state of the node at one moment.

    :ivar now: monotonic time in seconds.
    :ivar ended: monotonic time of the end of the last shutter, or of the daemon's start.
    :ivar pause: seconds of undisturbed running after ``ended``, drawn by ``pause_of``.
    :ivar last: number of the job that ran alone last, or -1.
    :ivar warmed: monotonic time of the end of the last long shutter, or of the daemon's start.
    :ivar jobs: the registered jobs, in any order; before a shutter is due nothing depends on them.
    """

    now: float
    ended: float
    pause: float
    last: int
    warmed: float
    jobs: tuple[JobState, ...]


@dataclass(frozen=True)
class Shutter:
    """A shutter to open: the numbers of the job that runs alone and of the jobs that pause, and whether it is long."""

    alone: int
    paused: tuple[int, ...]
    is_long: bool = False


@dataclass(frozen=True)
class ShutterDecision:
    """A decision: the seconds to wait, and the shutter to open now, if any."""

    wait: float
    shutter: Shutter | None = None


def decide(snapshot: NodeSnapshot, settings: ShutterSettings) -> ShutterDecision:
    """Decide whether a shutter begins now, or how long to wait until the question is asked again.

    :param snapshot: state of the node.
    :param settings: parameters of the shutter.
    """
    due = snapshot.ended + snapshot.pause
    if snapshot.now < due:
        return ShutterDecision(due - snapshot.now)
    is_long = settings.warm > 0 and snapshot.now >= snapshot.warmed + settings.warm_every
    shutter = next_shutter(snapshot.jobs, snapshot.last, settings, is_long=is_long)
    return ShutterDecision(settings.every if shutter is None else 0.0, shutter)


def pause_of(drawn: float, settings: ShutterSettings) -> float:
    """Return the seconds until the next shutter, exponentially distributed above a least pause, with mean ``every``.

    Shutters at equal intervals fall into step with jobs whose phases are regular. The least pause is as long as a whole
    shutter, so that two of them never touch, but at most half of the mean.

    :param drawn: random number, uniform in [0, 1).
    :param settings: parameters of the shutter.
    """
    least = min(settings.every / 2, 3 * settings.region)
    return least - (settings.every - least) * math.log1p(-drawn)


def next_shutter(
    jobs: Sequence[JobState], last: int, settings: ShutterSettings, *, is_long: bool = False
) -> Shutter | None:
    """Choose the next job, in turn, whose measurement alone keeps all other jobs within their limit.

    A job that runs beside no other is never chosen, because nothing would pause. A job that somebody else has stopped
    does not count: it disturbs nobody and is not resumed.

    :param jobs: the registered jobs, in any order.
    :param last: number of the job that ran alone last; the job may have left meanwhile.
    :param settings: parameters of the shutter.
    :param is_long: whether the shutter shall be long; it is not if a job's limit forbids this.
    """
    running = sorted((job for job in jobs if job.is_running), key=lambda job: job.number)
    if len(running) < 2:
        return None
    for one in (*(job for job in running if job.number > last), *(job for job in running if job.number <= last)):
        others = [job for job in running if job is not one]
        longest = max(job.stopped for job in others) + settings.region
        if longest <= settings.most_stopped:
            paused = tuple(job.number for job in others)
            return Shutter(one.number, paused, is_long and longest + settings.warm <= settings.most_stopped)
    return None
