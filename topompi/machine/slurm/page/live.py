"""The state behind the live page of a Slurm cluster: the last snapshot, its sections, and its picture."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ....errors import SourceError
from ....inputs import open_begun
from ..snapshot import SlurmSnapshot
from .holdings import Holdings, Site
from .whole import NO_LOG, digest, sections, whole_page

__all__ = ["LivePage", "last_lines"]

MOST_TAIL = 64 * 1024  # bytes of the end of the bridge's log that are read


class LivePage:
    """The texts that a browser asks for; Slurm is asked when they are older than the interval of refreshing.

    All browsers together thus cost no more than one. If Slurm does not answer, the last state stays, with the problem.

    :param ask: function that returns Slurm's present state, and raises SourceError if there is none.
    :param site: the machine.
    :param every: seconds between two refreshes of the page.
    :param log: path of the bridge's log; None if there is none.
    :param door: partition in which jobs wait for the bridge.
    """

    def __init__(
        self,
        ask: Callable[[], SlurmSnapshot],
        site: Site,
        every: float = 5.0,
        log: Path | None = None,
        door: str = "door",
    ) -> None:
        self._ask, self._site, self._every, self._log, self._door = ask, site, every, log, door
        self._lock = threading.Lock()
        self._asked = -float("inf")  # by the monotonic clock
        self._now, self._since, self._problem = 0, 0, ""
        self._sections: dict[str, str] = {}
        self._holdings: Holdings | None = None
        self._picture = self._digest = ""

    @property
    def answers(self) -> Mapping[str, Callable[[], tuple[str, str]]]:
        """The functions that return media type and text of each answer, by path."""
        return {"/": self._page, "/data": self._data, "/picture": self._svg}

    def text(self, every: float | None = None) -> str:
        """Return the whole page.

        :param every: seconds between two refreshes; 0 for a page that does not refresh itself, None for the live one's.
        """
        self._refresh()
        every = self._every if every is None else every
        return whole_page(self._site.name, self._sections, self._picture, self._now, every, self._told())

    def require(self) -> None:
        """Ask Slurm once.

        :raises SourceError: if it does not answer.
        """
        self._refresh()
        if self._problem:
            raise SourceError(self._problem)

    def _page(self) -> tuple[str, str]:
        return "text/html", self.text()

    def _data(self) -> tuple[str, str]:
        self._refresh()
        data = {"now": self._now, "problem": self._told(), "since": self._since, "picture": self._digest}
        return "application/json", json.dumps(data | {"sections": self._sections})

    def _svg(self) -> tuple[str, str]:
        return "image/svg+xml", self._picture

    def _told(self) -> str:
        return f"Slurm does not answer, and the state below is old: {self._problem}" if self._problem else ""

    def _refresh(self) -> None:
        with self._lock:
            if time.monotonic() - self._asked < 0.8 * self._every:  # browsers do not ask exactly when the time is over
                return
            try:
                self._take(self._ask())
                self._problem = ""
            except SourceError as problem:
                self._since = self._since if self._problem else int(time.time())
                self._problem = str(problem)
            self._asked = time.monotonic()

    def _take(self, snapshot: SlurmSnapshot) -> None:
        """Take over a state; the picture is drawn again only if it would be another one."""
        before, holdings = self._holdings, Holdings(snapshot, self._site, self._holdings)
        lines, no_log = last_lines(self._log)
        found = sections(snapshot, holdings, self._site, lines, no_log, self._door)
        if before is None or holdings.key != before.key:
            self._picture = holdings.picture()
            self._digest = digest(self._picture)
        self._sections, self._holdings, self._now = found, holdings, snapshot.now


def last_lines(path: Path | None) -> tuple[list[str] | None, str]:
    """Return the last lines of the bridge's log, and, if they are None, a sentence that says why.

    :param path: path of the log; None if none was given.
    """
    if path is None:
        return None, NO_LOG
    try:
        with open_begun(path, SourceError, "the bridge's log").open() as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - MOST_TAIL))
            text = stream.read(MOST_TAIL).decode("utf-8", errors="replace")
    except SourceError as error:
        return None, f"The bridge's log: {error}."
    lines = text.splitlines()
    return (lines[1:] if size > MOST_TAIL else lines), ""  # the first one may be cut
