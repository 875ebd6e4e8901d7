"""What a topology source yields, and how it says what is wrong with its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import TopompiError
from .fabric import Fabric
from .routes import Routes
from .served import Served

__all__ = ["Discovery", "Report"]


@dataclass(frozen=True, eq=False)
class Discovery:
    """The outcome of reading a source.

    :param fabric: the fabric.
    :param routes: routes the source itself holds (forwarding tables); None where they are to be computed.
    :param rank_hosts: host name of each rank, where the source places ranks (MPICH coordinates); else None.
    :param lids: LID -> adapter or switch id, for forwarding tables whose entries carry no GUID.
    :param served: the topology service that it came from, if any.
    """

    fabric: Fabric
    routes: Routes | None = None
    rank_hosts: tuple[str, ...] | None = None
    lids: Mapping[int, str] = field(default_factory=dict)
    served: Served | None = None

    def __repr__(self) -> str:
        return f"Discovery({self.fabric!r}, {'no routes' if self.routes is None else self.routes.engine!r})"


@dataclass
class Report:
    """Takes the problems that parsers meet: raises the first one, or with ``partial`` lists all of them.

    :param partial: continue with what is sound.
    :param progress: called with (what is being done, done, total) during long work; total 0 where unknown.
    :param problems: messages of the problems met so far; stays empty without ``partial``.
    :param notes: what a user should know although nothing is missing, with file and line.
    """

    partial: bool = False
    progress: Callable[[str, int, int], None] | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def problem(self, error: TopompiError) -> None:
        """Raise the error, or note its message and return if partial reading was asked for."""
        if not self.partial:
            raise error
        self.problems.append(str(error))

    def note(self, message: str) -> None:
        """Keep a message about input that is oddly made but whole."""
        self.notes.append(message)

    def step(self, what: str, done: int = 0, total: int = 0) -> None:
        """Tell the progress callback, if any.

        :param what: is being done, in words.
        :param done: pieces done so far; likewise ``total``, of how many, 0 where unknown.
        """
        if self.progress is not None:
            self.progress(what, done, total)
