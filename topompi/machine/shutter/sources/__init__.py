"""Sources of progress behind one interface, and the choice of the best that can measure a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ShutterError
from ..holds import Process
from .base import Reader, Reading, Source, UnavailableError
from .calls import CountedCalls
from .clock import Clock
from .counter import Counter
from .perf import Perf

__all__ = ["SOURCES", "Reader", "Reading", "Source", "UnavailableError", "choose", "usable"]

SOURCES: dict[str, Source] = {one.name: one for one in (Perf(), Counter(), CountedCalls(), Clock())}  # the best first


def usable(name: str = "auto") -> tuple[list[Source], dict[str, str]]:
    """Return the sources that this machine has, the best first, and the reason why each other source is missing.

    :param name: name of the only source to use, or "auto" for all.
    :raises ShutterError: if there is no such source, or the only source is missing.
    """
    if name != "auto" and name not in SOURCES:
        raise ShutterError(f"expecting one of auto, {', '.join(SOURCES)} as source of progress, got {name}")
    found, missing = [], {}
    for source in SOURCES.values():
        if name in ("auto", source.name):
            try:
                source.check()
                found.append(source)
            except UnavailableError as why:
                missing[source.name] = str(why)
    if not found:
        raise ShutterError(f"expecting the source {name}, but {missing[name]}")
    return found, missing


def choose(processes: Iterable[Process], sources: Sequence[Source]) -> tuple[Source | None, dict[Process, Reader]]:
    """Choose the first source that measures a process of a job, and open it for all processes that it measures.

    :param processes: the job's processes.
    :param sources: the sources to try, the best first.
    """
    listed = list(processes)
    for source in sources:
        readers: dict[Process, Reader] = {}
        for process in listed:
            try:
                readers[process] = source.open(process)
            except UnavailableError:
                continue
        if readers:
            return source, readers
    return None, {}
