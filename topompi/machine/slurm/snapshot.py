"""The jobs, nodes and partitions of a Slurm at one moment, from the text of ``squeue`` and ``sinfo``.

The columns are chosen by their letters and contain no text of a user, because a job's name may contain line ends, and
so could forge lines. The note of the administrator, which users cannot write, comes from a command of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from ...errors import SourceError
from ...inputs.hostlist import expand
from ...inputs.slurm.accounting import span
from ...inputs.slurm.commands import COLUMNS, MARK, SHOW_NODES, SHOW_QUEUE
from ...inputs.slurm.squeue import holds_nodes
from .mark import Mark

__all__ = ["SlurmJob", "SlurmSnapshot", "read_snapshot"]

KEPT_LINES = 16_384  # lines of squeue whose jobs are kept, because most are the same a second later
MOST_TASKS = 4_096  # maximum number of waiting tasks per array that a snapshot contains; they are alike
_ARRAY = re.compile(r"([0-9]+)_(?:([0-9]+)|\[([0-9,:-]+?),?(?:\.{3})?(?:%([0-9]+))?\])")
_TASKS = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")
# States in which a node takes jobs, now or after its jobs. Signs of saving power and of a planned job do not matter;
# those of a node that does not answer (*), is maintained ($) or reboots (@, ^) stay, so that it counts as closed.
_IN_USE = {"allocated", "mixed", "completing", "alloc", "mix", "comp"}
_FREE = {"idle", "planned", "plnd"}
_HARMLESS_SIGNS = "~#!%-"
# Reasons for which a job could not start even if nodes were free. Slurm keeps these up to date while the partition is
# down. It does not keep others up to date, for example an account's limit, so that they say nothing here.
_WAITS_FOR_MORE = ("Dependency", "BeginTime", "JobHeld", "DeadLine")


@dataclass(frozen=True)
class SlurmJob:
    """A job of Slurm's queue, or a task of a job array.

    :param id: name that ``scontrol update`` takes: ``12``, or ``12_3`` for a task of an array.
    :param partition: partition, or several with commas.
    :param state: state in Slurm's words, in capitals.
    :param reason: reason for which it waits.
    :param nodes: number of nodes that it asks for or holds; the greatest if it asks for a range.
    :param priority: priority; 0 if it is held.
    :param limit: time limit in seconds; None if it has none.
    :param submit: time of submission, in seconds since 1970.
    :param start: time of its start, in seconds since 1970; 0 if it has not started.
    :param end: time at which its limit ends it, in seconds since 1970; 0 if unknown.
    :param user: name of its user.
    :param wanted: host list of the nodes that it asks for.
    :param excluded: host list of the nodes that it refuses.
    :param features: features that its nodes must have.
    :param resources: generic resources that it asks for.
    :param reservation: reservation in which it runs.
    :param hosts: names of the nodes that it holds.
    :param array: number of its array; empty if it belongs to none.
    :param throttle: maximum number of tasks of its array that may run at once; 0 if there is none.
    :param together: whether it is a part of a heterogeneous job, whose parts start together.
    :param mark: the bridge's note on this job.
    """

    id: str
    partition: str
    state: str
    reason: str = ""
    nodes: int = 1
    priority: int = 1
    limit: int | None = None
    submit: int = 0
    start: int = 0
    end: int = 0
    user: str = ""
    wanted: str = ""
    excluded: str = ""
    features: str = ""
    resources: str = ""
    reservation: str = ""
    hosts: tuple[str, ...] = ()
    array: str = ""
    throttle: int = 0
    together: bool = False
    mark: Mark = field(default_factory=Mark)

    @property
    def holds(self) -> bool:
        """Whether it holds nodes: it runs, completes, is suspended or configures."""
        return bool(self.hosts) and holds_nodes(self.state)

    @property
    def is_placed(self) -> bool:
        """Whether the bridge chose its nodes."""
        return self.mark.moved > 0 and not self.mark.left

    @property
    def waits(self) -> bool:
        """Whether it waits, but for no other job, no time, and no release from a hold."""
        return self.state == "PENDING" and self.priority > 0 and not self.reason.startswith(_WAITS_FOR_MORE)


@dataclass(frozen=True)
class SlurmSnapshot:
    """A Slurm at one moment.

    :param now: seconds since 1970.
    :param jobs: jobs that wait or hold nodes, in squeue's order.
    :param states: states of each node, without signs, for example ``idle`` or ``draining``.
    :param up: whether each partition is up, so that its jobs start.
    :param members: names of the nodes of each partition.
    """

    now: int
    jobs: tuple[SlurmJob, ...] = ()
    states: Mapping[str, frozenset[str]] = field(default_factory=dict)
    up: Mapping[str, bool] = field(default_factory=dict)
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def closed(self) -> frozenset[str]:
        """Names of the nodes that take no job even if none runs on them, for example drained or reserved ones."""
        return frozenset(name for name, states in self.states.items() if not states <= _IN_USE | _FREE)

    @property
    def busy(self) -> frozenset[str]:
        """Names of the nodes on which, by ``sinfo``, jobs run."""
        return frozenset(name for name, states in self.states.items() if states & _IN_USE)


def read_snapshot(now: int, queue: str, marks: str, nodes: str) -> SlurmSnapshot:
    """Read the outputs of ``SHOW_QUEUE``, ``SHOW_MARKS`` and ``SHOW_NODES``.

    :param now: seconds since 1970.
    :param queue: jobs.
    :param marks: notes of the administrator on the jobs, by their numbers.
    :param nodes: states of the nodes by partition.
    :raises SourceError: if a text is malformed.
    """
    rows = (line.split(MARK) for line in marks.split(MARK + "\n") if line)
    notes = {row[0]: Mark.parse(row[1]) for row in rows if len(row) == 2}
    jobs = tuple(chain.from_iterable(_of_line(line, notes) for line in queue.splitlines() if line.strip()))
    states: dict[str, frozenset[str]] = {}
    members: dict[str, set[str]] = {}
    up: dict[str, bool] = {}
    for line in nodes.splitlines():
        partition, state, words, listed = _cells(line, 4, SHOW_NODES[0])
        names = expand(listed) if listed not in ("", "(null)") else []
        up[partition] = state == "up"
        members.setdefault(partition, set()).update(names)
        found = frozenset(word.rstrip(_HARMLESS_SIGNS) for word in words.lower().split("+")) - {""}
        states.update((name, states.get(name, frozenset()) | found) for name in names)
    return SlurmSnapshot(now, jobs, states, up, {name: frozenset(nodes) for name, nodes in members.items()})


def _cells(line: str, count: int, command: str) -> list[str]:
    cells = line.split(MARK)
    if len(cells) != count:
        raise SourceError(f"{command}: expecting {count} columns, got {line[:80]!r}")
    return cells


def _of_line(line: str, notes: Mapping[str, Mark]) -> tuple[SlurmJob, ...]:
    number = line.split(MARK, 2)[1] if line.count(MARK) > 1 else ""
    return _jobs(line, notes.get(number, Mark()))


@lru_cache(KEPT_LINES)
def _jobs(line: str, mark: Mark) -> tuple[SlurmJob, ...]:
    """Return the jobs of a line: one, or the tasks of an array."""
    cell = dict(zip(COLUMNS, _cells(line, len(COLUMNS), SHOW_QUEUE[0]), strict=True))
    try:
        job = _job(cell, mark)
        array = _ARRAY.fullmatch(cell["i"])
        if array is None and "_" in cell["i"]:
            raise SourceError("expecting a job or tasks of an array")
        if array is None:
            return (replace(job, together="+" in cell["i"]),)
        number, task, listed, throttle = array.groups()
        job = replace(job, array=number, throttle=int(throttle or 0) or mark.throttle)
        return tuple(replace(job, id=f"{number}_{one}") for one in ([int(task)] if task else _tasks(listed)))
    except (ValueError, SourceError) as problem:
        raise SourceError(f"squeue: job {cell['i'][:40]}: {problem}") from problem


def _tasks(listed: str) -> list[int]:
    """Return the first numbers in a list such as ``1-5,9-30:3``, at most ``MOST_TASKS``."""
    found: list[int] = []
    for part in listed.split(","):
        if (match := _TASKS.fullmatch(part)) is None:
            raise SourceError(f"expecting tasks of an array, got {listed[:40]!r}")
        first, last, step = (int(word or 0) for word in match.groups())
        found += range(first, max(first, last) + 1, step or 1)[: MOST_TASKS - len(found)]
    return found


def _job(cell: Mapping[str, str], mark: Mark) -> SlurmJob:
    held = _text(cell["N"])
    return SlurmJob(
        id=cell["i"] if "+" not in cell["i"] else cell["A"],
        partition=cell["P"],
        state=cell["T"].upper(),
        reason=cell["r"],
        nodes=int(cell["D"]),
        priority=int(cell["Q"]),
        limit=span(cell["l"]),
        submit=_second(cell["V"]),
        start=_second(cell["S"]),
        end=_second(cell["e"]),
        user=cell["u"],
        wanted=_text(cell["n"]),
        excluded=_text(cell["x"]),
        features=_text(cell["f"]),
        resources=_text(cell["b"]),
        reservation=_text(cell["v"]),
        hosts=tuple(expand(held)) if held else (),
        mark=mark,
    )


def _text(cell: str) -> str:
    return "" if cell in ("(null)", "N/A", "None") else cell


def _second(cell: str) -> int:
    return int(cell) if cell.isdecimal() and len(cell) < 16 else 0
