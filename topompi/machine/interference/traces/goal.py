"""A reader of GOAL, the text form of LogGOPSim's and ATLAHS' programs, whose operations form a graph.

Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, 2009; Hoefler, Schneider, Lumsdaine: LogGOPSim, 2010.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....inputs import InputFile, current_limits, open_inputs
from ..errors import InterferenceError
from .matching import program_of
from .operations import Operations, Trace, columns_of

__all__ = ["NANOSECONDS", "read_goal", "recognise"]

NANOSECONDS = 1e-9  # seconds; unit of calc
WANTED = "a program in GOAL"
_MARK = re.compile(r"//|/\*|#")
_SIZE = re.compile(r"num_ranks\s+([0-9]{1,7})", re.IGNORECASE)
_RANK = re.compile(r"rank\s+([0-9]{1,7})\s*\{", re.IGNORECASE)
_OPERATION = re.compile(
    r"(?:(?P<label>\w+)\s*:\s*)?(?:"
    r"(?P<way>send|recv)\s+(?P<nbytes>[0-9]{1,18})b\s+(?:to|from)\s+(?P<peer>[0-9]{1,7})(?:\s+tag\s+(?P<tag>[0-9]{1,9}))?"
    r"|calc\s+(?P<burst>[0-9]{1,18}))(?P<place>(?:\s+(?:cpu|nic)\s+[0-9]+)*)",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"(\w+)\s+(i?requires)\s+(\w+)", re.IGNORECASE)
_EMPTY = re.compile(r"\s*+(?:\}\s*+)?")


@dataclass
class _Operation:
    """An operation of a rank.

    :param line: line of the file.
    :param way: ``send``, ``recv`` or ``calc``.
    :param amount: bytes, or the burst in GOAL's unit.
    :param peer: other rank of a message.
    :param tag: tag of a message.
    :param complete: indices of the operations that must be complete before it begins.
    :param begun: indices of the operations that must have begun before it.
    """

    line: int
    way: str
    amount: float
    peer: int = 0
    tag: int = 0
    complete: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)


def recognise(text: str) -> bool:
    """Whether the first word is ``num_ranks``.

    :param text: beginning of the file.
    """
    return bool(_SIZE.match(_uncommented(text)[0].lstrip()))


def _uncommented(text: str) -> tuple[str, bool]:
    """Return a text without its comments, and whether it ends in a comment that the text after it may close."""
    found, at = [], 0
    while mark := _MARK.search(text, at):
        found.append(text[at : mark.start()])
        closing = "*/" if mark[0] == "/*" else "\n"
        end = text.find(closing, mark.end())
        if end < 0:
            return " ".join(found), mark[0] == "/*"
        at = end + 2 if mark[0] == "/*" else end
    return " ".join([*found, text[at:]]), False


def read_goal(path: str | os.PathLike[str], *, unit: float = NANOSECONDS, partial: bool = False) -> Trace:
    """Read a program in GOAL.

    A rank begins its operations in an order in which each follows those that it requires, by depth in their graph and
    then messages before bursts. Its processor computes one burst at a time.

    :param path: path of the file.
    :param unit: seconds of ``calc 1``.
    :param partial: whether wrong lines are skipped and counted in ``Trace.notes``; else they are errors.
    :raises InterferenceError: if a line is wrong, with file and line; if operations require each other in a circle, or
        a message has one end.
    Cost: about 5 us per line.
    """
    (file,) = open_inputs(path, InterferenceError, WANTED)[:1]
    reader = _Reader(file, partial)
    ranks = []
    for operations in reader.ranks():
        ranks.append(_in_order(file.name, operations, unit))
    columns = columns_of(ranks)

    def place(row: int) -> str:
        return f"{file.name}:{columns['line'][row]}"

    program, notes = program_of(str(path), len(ranks), columns, place, partial=partial)
    return Trace(program, (*notes, *reader.notes()))


class _Reader:
    """The statements of a file.

    :param file: the file.
    :param partial: whether wrong lines are skipped and counted.
    """

    def __init__(self, file: InputFile, partial: bool) -> None:
        self.file, self.partial = file, partial
        self.skipped: list[str] = []
        self.cpus: set[str] = set()

    def notes(self) -> Iterator[str]:
        """The oddities, one sentence each."""
        if self.skipped:
            yield f"{len(self.skipped)} lines skipped, the first {self.skipped[0]}"
        if len(self.cpus) > 1:
            yield f"bursts on {len(self.cpus)} processors of a rank taken as bursts on one"

    def ranks(self) -> list[list[_Operation]]:
        """The operations of each rank, in the order of the file."""
        found: list[list[_Operation] | None] = []
        here: list[_Operation] | None = None
        labels: dict[str, int] = {}
        for number, line in self._statements():
            if size := _SIZE.fullmatch(line):
                current_limits().check("ranks", int(size[1]), f"{self.file.name}:{number}", InterferenceError)
                found = [None] * int(size[1])
            elif rank := _RANK.match(line):
                if not int(rank[1]) < len(found):
                    self._refuse(number, f"expecting a rank in range({len(found)}), got {rank[1]}")
                here, labels = [], {}
                found[int(rank[1])] = here
            elif not _EMPTY.fullmatch(line):
                self._statement(number, line, here, labels)
        if not found or None in found:
            lack = f"a program of rank {found.index(None)}" if found else "num_ranks"
            raise InterferenceError(f"{self.file.name}: expecting {lack}, got none")
        return [one for one in found if one is not None]

    def _statements(self) -> Iterator[tuple[int, str]]:
        """Lines without comments, and their numbers; ``rank N {`` may be followed by a statement in its line."""
        within = False
        for number, line in self.file.lines():
            if within:
                _, end, line = line.partition("*/")
                within = not end
            if not within:
                line, within = _uncommented(line)
            heading = _RANK.match(line.strip())
            if heading:
                yield number, heading[0]
                line = line.strip()[heading.end() :]
            if line.strip():
                yield number, line.strip().rstrip(";")

    def _statement(self, number: int, line: str, here: list[_Operation] | None, labels: dict[str, int]) -> None:
        if here is None:
            raise InterferenceError(f"{self.file.name}:{number}: expecting rank N {{ before an operation, got {line!r}")
        text = line.rstrip("} ")
        if needs := _NEEDS.fullmatch(text):
            unknown = [label for label in (needs[1], needs[3]) if label not in labels]
            if unknown:
                self._wrong(number, f"expecting the label of an operation above, got {unknown[0]!r}")
                return
            one, other = here[labels[needs[1]]], labels[needs[3]]
            (one.begun if needs[2].lower() == "irequires" else one.complete).append(other)
        elif found := _OPERATION.fullmatch(text):
            if found["label"]:
                labels[found["label"]] = len(here)
            self.cpus.update(re.findall(r"cpu\s+(\d+)", found["place"]))
            way = (found["way"] or "calc").lower()
            amount = float(found["nbytes"] or found["burst"])
            here.append(_Operation(number, way, amount, int(found["peer"] or 0), int(found["tag"] or 0)))
        else:
            self._wrong(number, f"expecting send, recv, calc or requires, got {line!r}")

    def _refuse(self, number: int, problem: str) -> None:
        raise InterferenceError(f"{self.file.name}:{number}: {problem}")

    def _wrong(self, number: int, problem: str) -> None:
        if not self.partial:
            self._refuse(number, problem)
        self.skipped.append(f"{self.file.name}:{number}: {problem}")


def _in_order(file: str, operations: list[_Operation], unit: float) -> Operations:
    """A rank's operations in an order that its processor can follow.

    :param file: name of the file.
    :param operations: the operations.
    :param unit: seconds of ``calc 1``.
    """
    made, steps = Operations(), dict[int, int]()
    depth = _depths(file, operations)
    for at in sorted(range(len(operations)), key=lambda one: (depth[one], operations[one].way == "calc", one)):
        one = operations[at]
        for before in one.complete:
            if operations[before].way != "calc":  # the processor ends a burst before it begins another operation
                made.wait(steps[before])
        message = [(one.peer, one.amount, one.tag)]
        if one.way == "calc":
            steps[at] = made.compute(one.amount * unit, one.line)
        else:
            receives, sends = ([], message) if one.way == "send" else (message, [])
            steps[at] = made.post(receives, sends, one.line)
    return made


def _depths(file: str, operations: list[_Operation]) -> list[int]:
    """The length of the longest chain of required operations before each operation."""
    needs = [{*one.complete, *one.begun} for one in operations]
    followers: list[list[int]] = [[] for _ in operations]
    for at, before in enumerate(needs):
        for one in before:
            followers[one].append(at)
    left, depth = [len(before) for before in needs], [0] * len(operations)
    ready = [at for at, count in enumerate(left) if not count]
    for at in ready:
        for after in followers[at]:
            depth[after] = max(depth[after], depth[at] + 1)
            left[after] -= 1
            if not left[after]:
                ready.append(after)
    if len(ready) < len(operations):
        line = operations[next(at for at, count in enumerate(left) if count)].line
        raise InterferenceError(f"{file}:{line}: expecting operations in no circle, got one that requires itself")
    return depth
