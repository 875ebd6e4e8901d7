"""``topompi shutter run``: the daemon."""

from __future__ import annotations

import ctypes
import gc
import logging
import math
import os
import platform
import pwd
import random
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from ...inputs.pairs import read_pairs
from ...machine.daemon.log import log_as_json
from ...machine.daemon.notify import notify
from ...machine.daemon.unit import own_command
from ...machine.shutter.decide import ShutterSettings
from ...machine.shutter.errors import ShutterError
from ...machine.shutter.log import Log
from ...machine.shutter.loop import Shutters
from ...machine.shutter.sources import usable
from ...machine.shutter.steps import PLACES
from ...machine.shutter.unit import unit_text
from ...machine.shutter.wanted import FORMS, JobFolders, JobTargets
from ..inputs import Settings as Given
from ..inputs import settings_of
from ..quantities import COUNT, MILLISECONDS, SECONDS

__all__ = ["run"]

_JOB = f"NAME=TARGET; TARGET is {FORMS}; may be repeated."
_FILE = "File with a job per line in the form of --job; it is read every second."
_FOLDER = "Directory of control groups (version 2), each a job."
_SLURM = f"Folder of Slurm's control groups, or SlurmdSpoolDir; by default the first of {', '.join(PLACES)}."
_USER = "As root: a user whose processes may be stopped; may be repeated."
_EVERY = "Milliseconds between shutters: the mean of an exponential distribution."
_CORE = "Core to run on; by default one that no job uses, else one of the job that is measured alone."
KNOWN = {
    "length": (MILLISECONDS, 0.32),
    "repeats": (COUNT, 10),
    "warm": (MILLISECONDS, 40.0),
    "warm-every": (SECONDS, 10.0),
}
_MOST = "Seconds that one job may be stopped in total."


def run(
    log: Annotated[Path, typer.Option("--log", help="File for the measurements; one that exists is continued.")],
    job: Annotated[list[str] | None, typer.Option("--job", help=_JOB)] = None,
    jobs: Annotated[Path | None, typer.Option("--jobs", help=_FILE)] = None,
    cgroups: Annotated[Path | None, typer.Option("--cgroups", help=_FOLDER)] = None,
    slurm: Annotated[Path | None, typer.Option("--slurm", help=_SLURM)] = None,
    every: Annotated[float, MILLISECONDS("--every", help=_EVERY)] = 200.0,
    given: Given = None,
    source: Annotated[str, typer.Option("--source", help="Progress: auto, perf, counter, calls, clock.")] = "auto",
    most: Annotated[float | None, SECONDS("--most-stopped", help=_MOST)] = None,
    user: Annotated[list[str] | None, typer.Option("--user", help=_USER)] = None,
    core: Annotated[int | None, COUNT("--core", help=_CORE, min=0)] = None,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a systemd unit that does this, and end.")
    ] = False,
) -> None:
    """Stop all jobs of a node but one for milliseconds, in turn, and log each job's progress before, alone and after.

    Only jobs that are named here are stopped, and only processes of this user, or, as root, of each --user. A second
    process resumes everything if this one dies; SIGTERM and SIGINT resume everything and end both. Settings: length
    (milliseconds of one measurement), repeats (measurements per region), warm (milliseconds by which a long shutter is
    longer, so that caches become warm; 0 for none), warm-every (seconds between long shutters).
    """
    log_as_json("topompi.machine.shutter")
    known = settings_of(given, KNOWN, ShutterError)
    length, repeats, warm, warm_every = (known[name] for name in KNOWN)
    settings = ShutterSettings(
        length / 1e3, every / 1e3, repeats, warm / 1e3, warm_every, math.inf if most is None else most
    )
    users = _users(user or [])
    if not (job or jobs or cgroups):
        raise ShutterError("expecting --job, --jobs or --cgroups, got none")
    read_pairs(job or (), "--job", "NAME=TARGET", ShutterError)
    wanted = JobTargets(job or [], jobs, cgroups)
    if print_unit:
        print(unit_text(own_command(sys.argv[1:], "run", without="--print-unit"), log), end="")
        return
    sources, missing = usable(source)
    if core is not None:
        _pin(core)
    _allow_many_files()
    header = {
        "host": platform.node(),
        "clock": "monotonic seconds",
        "length": settings.length,
        "every": settings.every,
        "repeats": repeats,
        "warm": settings.warm,
        "warm_every": warm_every,
        "sources": [one.name for one in sources],
        "missing": missing,
    }
    _wake_precisely()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    places = JobFolders(slurm, cgroups)
    made = Shutters(settings, wanted, places.target, Log(log, header), sources, users, random.Random())
    for name, why in missing.items():
        logging.getLogger("topompi.machine.shutter").warning("no source %s: %s", name, why)
    gc.freeze()  # collections then skip the objects of the imports, which take milliseconds to look through
    notify("READY=1")
    made.run(stop)


def _users(names: list[str]) -> frozenset[int]:
    """Return the numbers of the users whose processes may be stopped.

    :param names: names or numbers that the administrator gave.
    :raises ShutterError: if there is no such user, if root names nobody, or if another user names others.
    """
    if os.geteuid() != 0:
        if names:
            raise ShutterError("expecting --user from root alone, because a user may stop only his own processes")
        return frozenset({os.geteuid()})
    if not names:
        raise ShutterError("expecting --user as root, got none")
    try:
        return frozenset(int(one) if one.isdecimal() and len(one) < 11 else pwd.getpwnam(one).pw_uid for one in names)
    except KeyError as error:
        raise ShutterError(f"expecting the name of a user, got {error}") from None


def _pin(core: int) -> None:
    """Let this process and the watchdog run on one core only.

    :param core: number of the core.
    """
    try:
        os.sched_setaffinity(0, {core})
    except (OSError, ValueError, OverflowError):
        raise ShutterError(f"expecting a core of {sorted(os.sched_getaffinity(0))}, got {core}") from None


def _wake_precisely() -> None:
    """Ask the kernel to end this thread's sleeps within a microsecond of their time, not within the usual 50."""
    ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1000), 0, 0, 0)  # PR_SET_TIMERSLACK, in nanoseconds


def _allow_many_files() -> None:
    """Raise the number of descriptors to the limit that this user has: each process of a job needs several."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
