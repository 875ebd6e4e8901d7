"""A reader of SimGrid's time-independent traces (``smpirun -trace-ti``), whose actions are messages and flops."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ....inputs import InputFile, current_limits, open_inputs
from ..errors import InterferenceError
from .collectives import ALGORITHMS, MessageCount
from .matching import ANY, program_of
from .operations import Trace, columns_of
from .simgridcalls import BYTE, COLLECTIVES, DOUBLE, CollectiveCalls, Rank, WrongActionError, number_of, whole_of

__all__ = ["FLOPS", "read_simgrid", "recognise"]

FLOPS = 1e9  # flop/s of the recorded machine; smpirun's default for smpi/host-speed is 20 Gflop/s, examples take 1
WANTED = "SimGrid's time-independent trace"
NO_RANK = -100  # any sender, any tag and no rank are numbers below this
_ACTION = re.compile(r"\s*\d+\s+[A-Za-z]\w*(\s|$)")
_RANK = re.compile(r"[0-9]{1,7}")
IGNORED = (
    "finalize",
    "test",
    "testall",
    "testany",
    "testsome",
    "probe",
    "iprobe",
    "comm_size",
    "comm_split",
    "comm_dup",
)


def recognise(text: str) -> bool:
    """Whether the first line is an action of a rank, or the name of a file of actions.

    :param text: beginning of the file.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(_ACTION.match(first)) or first.strip().endswith("txt")


def read_simgrid(
    path: str | os.PathLike[str],
    *,
    flops: float = FLOPS,
    partial: bool = False,
    algorithms: Mapping[str, str] = ALGORITHMS,
) -> Trace:
    """Read a trace: the list of files that smpirun wrote, a folder of these files, or one file with all ranks.

    Collectives become the messages of textbook algorithms over all ranks, because the trace names no communicators.
    Non-blocking collectives block. A test of a request completes nothing.

    :param path: path of the list, folder or file.
    :param flops: flop/s of the recorded machine (``smpi/host-speed``), by which flops become seconds.
    :param partial: whether wrong lines are skipped and counted in ``Trace.notes``; else they are errors.
    :param algorithms: algorithm of each collective.
    :raises InterferenceError: if a line is wrong, with file and line; if a rank is missing, or a message has one end.
    Cost: about 4 us per action, and per message of a collective.
    """
    if not (np.isfinite(flops) and flops > 0):
        raise InterferenceError(f"{path}: expecting more than 0 flop/s, got {flops:g}")
    files = list(_files(Path(path)))
    reader = _Reader(str(path), files, flops, partial, algorithms)
    for number in range(len(files)):
        reader.read(number)
    return reader.trace()


def _files(path: Path) -> Iterator[InputFile]:
    found = open_inputs(path, InterferenceError, WANTED)
    for file in found:
        head = file.head()
        if len(found) > 1 or _ACTION.match(next((line for line in head.splitlines() if line.strip()), "")):
            yield file
            continue
        for number, line in file.lines():
            if name := line.strip():
                there = Path(name) if Path(name).is_absolute() else path.parent / name
                if not there.is_file():
                    raise InterferenceError(
                        f"{file.name}:{number}: expecting the file of a rank's actions, got {name!r}"
                    )
                yield from open_inputs(there, InterferenceError, WANTED)


class _Reader(CollectiveCalls):
    """Actions of all ranks as operations.

    :param name: name of the trace.
    :param files: files of actions.
    :param flops: flop/s of the recorded machine.
    :param partial: whether wrong lines are skipped and counted.
    :param algorithms: algorithm of each collective.
    """

    def __init__(
        self, name: str, files: list[InputFile], flops: float, partial: bool, algorithms: Mapping[str, str]
    ) -> None:
        self.name, self.files, self.messages = name, files, MessageCount(name)
        self.flops, self.partial, self.algorithms = flops, partial, algorithms
        self.skipped: list[str] = []
        self.blocking = self.nobody = self.own = 0
        self.ranks = self._ranks()
        self.size = len(self.ranks)

    def _ranks(self) -> list[Rank]:
        found = {
            int(words[0])
            for file in self.files
            for _, line in file.lines()
            if (words := line.split(None, 1)) and len(words) > 1 and _RANK.fullmatch(words[0])
        }
        if not found:
            raise InterferenceError(f"{self.name}: expecting {WANTED}, got no action")
        current_limits().check("ranks", len(found), self.name, InterferenceError)
        if missing := sorted(set(range(len(found))) - found):
            text = f"expecting actions of ranks 0 to {len(found) - 1}, got none of {missing[0]}"
            raise InterferenceError(f"{self.name}: {text}")
        return [Rank(rank) for rank in range(len(found))]

    def read(self, number: int) -> None:
        """Convert the actions of a file.

        :param number: number of the file.
        """
        file = self.files[number]
        for at, line in file.lines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            try:
                if len(words) < 2 or not _RANK.fullmatch(words[0]):
                    raise WrongActionError(f"expecting RANK ACTION ..., got {line.strip()!r}")
                self._act(self.ranks[int(words[0])], words[1].lower(), words[2:], number << 32 | at)
            except WrongActionError as error:
                text = f"{file.name}:{at}: {error}"
                if not self.partial:
                    raise InterferenceError(text) from None
                self.skipped.append(text)

    def trace(self) -> Trace:
        """Match the messages, and return the trace."""
        columns = columns_of([rank.operations for rank in self.ranks])

        def place(row: int) -> str:
            line = int(columns["line"][row])
            return f"{self.files[line >> 32].name}:{line & 0xFFFFFFFF}"

        program, notes = program_of(self.name, self.size, columns, place, partial=self.partial)
        if self.skipped:
            notes.append(f"{len(self.skipped)} lines skipped, the first {self.skipped[0]}")
        if self.nobody:
            notes.append(f"{self.nobody} sends to no rank (MPI_PROC_NULL) left out")
        if self.own:
            notes.append(f"{self.own} messages of a rank to itself left out")
        if self.blocking:
            notes.append(f"{self.blocking} non-blocking collectives taken as blocking ones")
        return Trace(program, tuple(notes))

    def _act(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        if action == "init":
            rank.basic = DOUBLE if words else BYTE
        elif action in _ACTIONS:
            _ACTIONS[action](self, rank, words, line)
        elif action.startswith("i") and action[1:] in COLLECTIVES:
            self.blocking += rank.number == 0
            self.collective(rank, action[1:], words, line)
        elif action in COLLECTIVES:
            self.collective(rank, action, words, line)
        elif action not in IGNORED:
            known = ", ".join(sorted(("init", *_ACTIONS, *COLLECTIVES, *IGNORED)))
            raise WrongActionError(f"expecting an action of {known}, got {action!r}")

    # ---- computation and messages ----

    def _compute(self, rank: Rank, words: list[str], line: int) -> None:
        rank.operations.compute(number_of(words, 0, "flops") / self.flops, line)

    def _sleep(self, rank: Rank, words: list[str], line: int) -> None:
        rank.operations.compute(number_of(words, 0, "seconds"), line)

    def _message(self, rank: Rank, words: list[str], line: int) -> tuple[int, float, int]:
        """Peer, bytes and tag of ``PEER TAG COUNT [TYPE]``."""
        peer, tag = (whole_of(words, at, name) for at, name in ((0, "peer"), (1, "tag")))
        nbytes = number_of(words, 2, "count") * self.bytes_of(rank, words, 3)
        return (ANY if peer < NO_RANK else peer), nbytes, (ANY if tag < NO_RANK else tag)

    def _isend(self, rank: Rank, words: list[str], line: int) -> None:
        peer, nbytes, tag = self._message(rank, words, line)
        self.nobody += peer == ANY
        left_out = peer in (ANY, rank.number)
        step = None if left_out else rank.operations.post((), [(peer, nbytes, tag)], line)
        self._request(rank, (rank.number, peer, tag), step)

    def _irecv(self, rank: Rank, words: list[str], line: int) -> None:
        peer, nbytes, tag = self._message(rank, words, line)
        self.own += peer == rank.number
        step = None if peer == rank.number else rank.operations.post([(peer, nbytes, tag)], (), line)
        self._request(rank, (peer, rank.number, tag), step)

    def _request(self, rank: Rank, ends: tuple[int, int, int], step: int | None) -> None:
        rank.requests.append((*ends, step))
        rank.posted.add(ends)

    def _send(self, rank: Rank, words: list[str], line: int) -> None:
        self._isend(rank, words, line)
        self._complete(rank, -1)

    def _recv(self, rank: Rank, words: list[str], line: int) -> None:
        self._irecv(rank, words, line)
        self._complete(rank, -1)

    def _complete(self, rank: Rank, request: int) -> None:
        """Wait for a request, by its index."""
        step = rank.requests.pop(request)[-1]
        if step is not None:
            rank.operations.wait(step)

    def _sendrecv(self, rank: Rank, words: list[str], line: int) -> None:
        """``SENDCOUNT TO RECVCOUNT FROM [SENDTYPE RECVTYPE]``; the trace has no tags."""
        to, source = (whole_of(words, at, name) for at, name in ((1, "destination"), (3, "source")))
        sent = number_of(words, 0, "count") * self.bytes_of(rank, words, 4)
        taken = number_of(words, 2, "count") * self.bytes_of(rank, words, 5)
        self.own += source == rank.number
        receives = [] if source == rank.number else [(ANY if source < NO_RANK else source, taken, 0)]
        sends = [] if to == rank.number or to < NO_RANK else [(to, sent, 0)]
        if receives or sends:
            rank.operations.wait(rank.operations.post(receives, sends, line))

    # ---- waits ----

    def _wait(self, rank: Rank, words: list[str], line: int) -> None:
        ends = source, destination, tag = tuple(
            whole_of(words, at, name) for at, name in enumerate(("source", "destination", "tag"))
        )
        if tag < NO_RANK:  # the request of a non-blocking collective
            return
        wanted = [ends, (ANY, destination, tag), (source, destination, ANY), (ANY, destination, ANY)]
        for request in wanted:
            found = next((at for at, one in enumerate(rank.requests) if one[:3] == request), None)
            if found is not None:
                self._complete(rank, found)
                return
        if rank.posted.isdisjoint(wanted):  # else an earlier wait completed it
            raise WrongActionError(
                f"expecting the request of a message from {source} to {destination} with tag {tag}, got none"
            )

    def _waitall(self, rank: Rank, words: list[str], line: int) -> None:
        while rank.requests:
            self._complete(rank, 0)

    def _waitany(self, rank: Rank, words: list[str], line: int) -> None:
        if rank.requests:
            self._complete(rank, 0)


_ACTIONS: dict[str, Callable[[_Reader, Rank, list[str], int], object]] = {
    "compute": _Reader._compute,
    "sleep": _Reader._sleep,
    **dict.fromkeys(("send", "ssend"), _Reader._send),
    **dict.fromkeys(("isend", "issend"), _Reader._isend),
    "recv": _Reader._recv,
    "irecv": _Reader._irecv,
    "sendrecv": _Reader._sendrecv,
    "wait": _Reader._wait,
    "waitall": _Reader._waitall,
    **dict.fromkeys(("waitany", "waitsome"), _Reader._waitany),
}
