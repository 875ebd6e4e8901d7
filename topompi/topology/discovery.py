"""The result of reading a topology source, and the collector of problems in its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import TopompiError
from .fabric import Fabric
from .hostnaming import HostNaming
from .routes import Routes
from .served import Served

__all__ = ["Discovery", "Report"]


@dataclass(frozen=True, eq=False)
class Discovery:
    """The outcome of reading a topology source: a fabric and further contents of the source.

    :param fabric: the fabric.
    :param routes: routes that the source contains as forwarding tables; None if they have to be computed.
    :param rank_hosts: host name of each rank if the source places ranks (MPICH coordinates); else None.
    :param lids: LID -> adapter or switch id, to read forwarding tables whose entries contain no GUID.
    :param served: the topology service that answered, if any.
    :param naming: rules by which the hosts of adapters were found, in words; empty if the source names the hosts.
    :param devices: device name of adapters, by id, from their descriptions.
    """

    fabric: Fabric
    routes: Routes | None = None
    rank_hosts: tuple[str, ...] | None = None
    lids: Mapping[int, str] = field(default_factory=dict)
    served: Served | None = None
    naming: str = ""
    devices: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Discovery({self.fabric!r}, {'no routes' if self.routes is None else self.routes.engine!r})"


@dataclass
class Report:
    """A collector of the problems that parsers meet. Unless it is partial, it raises the first problem at once.

    :param partial: whether to record problems and continue with the sound part of the input.
    :param progress: callback that long work calls with the current step in words, the number of pieces done, and the
        number of all pieces, 0 if unknown.
    :param naming: rules that find the host of each InfiniBand adapter.
    :param labels: keys of the labels that name the switches above a node of Kubernetes, topmost first; empty for the
        usual ones.
    :param problems: messages of the problems met so far; always empty if ``partial`` is false.
    :param notes: remarks for the user on complete but unusual input, with file and line.
    :ivar refused: the first problem, raised because ``partial`` is false; None if no problem was met.
    """

    partial: bool = False
    progress: Callable[[str, int, int], None] | None = None
    naming: HostNaming = field(default_factory=HostNaming)
    labels: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: TopompiError | None = field(default=None, init=False)

    def problem(self, error: TopompiError) -> None:
        """Raise the error, or, if the report is partial, only record its message."""
        if not self.partial:
            self.refused = error
            raise error
        self.problems.append(str(error))

    def note(self, message: str) -> None:
        """Record a remark on input that is complete but unusual."""
        self.notes.append(message)

    def step(self, what: str, done: int = 0, total: int = 0) -> None:
        """Report progress to the callback, if there is one.

        :param what: current step, in words.
        :param done: number of pieces done so far.
        :param total: number of all pieces, 0 if unknown.
        """
        if self.progress is not None:
            self.progress(what, done, total)
