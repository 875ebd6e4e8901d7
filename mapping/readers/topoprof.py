"""A reader of profiles (``.topoprof``) of `topompi.mpi.profile`, whose module ``file`` describes the format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...inputs import parse_json
from .edges import EdgeList
from .text import MAX_RANKS, GraphFile, GraphFileError

__all__ = [
    "COUNTS",
    "GRANULARITIES",
    "KINDS",
    "MOVES",
    "NAME",
    "RECORDED",
    "VERSION",
    "Call",
    "Exchanges",
    "Head",
    "ProfileView",
    "RankLine",
    "head_of",
    "rank_of",
    "read",
    "recognise",
]

NAME = "topompi's profile (.topoprof)"
VERSION = 1
_HEADING = re.compile(r'\s*\{"topompi": ?"profile"')
# Kinds of traffic, under the letters that Open MPI's monitoring component uses for the same kinds.
KINDS = {
    "E": "sent by the program",
    "I": "sent in collectives",
    "S": "put by one-sided calls",
    "R": "got by one-sided calls",
    "C": "asked of collectives",
}


# Kinds whose bytes count as moved by default. The kind of bytes that collectives were asked to move is not among them,
# because kind I counts the same data in the library's messages.
MOVES = "EISR"
GRANULARITIES = ("process", "host", "switch")
RECORDED = GRANULARITIES[:2]
COUNTS = ("bytes", "messages")


@dataclass(frozen=True)
class ProfileView:
    """The requested view of a profile: a unit (of ``GRANULARITIES``) and a quantity (of ``COUNTS``); empty for none."""

    granularity: str = ""
    count: str = ""


class Head(NamedTuple):
    """The first line of a profile.

    :param size: number of ranks.
    :param method: method of recording.
    :param command: command that ran.
    :param seconds: duration of the run in seconds.
    :param hosts: host of each rank; empty if unknown.
    :param moves: kinds of traffic, as letters of ``KINDS``, that count as moved bytes.
    :param granularity: ``host`` if each peer stands for its whole host, else ``process``.
    :param virtual: whether the ranks did not really run on these hosts, but were placed on them for a study.
    :param counting: mean seconds that counting added to each call of rank 0; 0 if unknown.
    :param view: view that was requested when the profile was recorded.
    """

    size: int
    method: str
    command: str
    seconds: float
    hosts: tuple[str, ...]
    moves: str = MOVES
    granularity: str = "process"
    virtual: bool = False
    counting: float = 0.0
    view: ProfileView = ProfileView()


class Call(NamedTuple):
    """Identical collective calls.

    :param name: mpi4py's method.
    :param ranks: number of ranks of the communicator.
    :param nbytes: bytes of one call, counted as in the files of rules by which algorithms are chosen.
    :param times: number of calls.
    """

    name: str
    ranks: int
    nbytes: int
    times: int


class Exchanges(NamedTuple):
    """A rank's neighbourhood calls of one method on one communicator with a graph.

    :param name: mpi4py's method; that of the blocking call on buffers if topompi can run the call.
    :param first: lowest rank of the communicator.
    :param ranks: number of ranks of the communicator.
    :param number: index among all graphs of the same ranks in the same order, in the order of their first calls.
    :param times: number of calls.
    :param carried: number of these calls that topompi's carriers ran; the MPI library ran the others.
    :param peers: rank that each outgoing edge leads to.
    :param volume: bytes of each outgoing edge in all calls.
    """

    name: str
    first: int
    ranks: int
    number: int
    times: int
    carried: int
    peers: tuple[int, ...]
    volume: tuple[int, ...]


class RankLine(NamedTuple):
    """A rank's line.

    :param rank: the rank.
    :param kinds: peers, messages and bytes, one row each, for each kind of traffic, shape (3, peers).
    :param host: host of the rank.
    :param calls: collective calls of the rank.
    :param exchanges: neighbourhood calls of the rank.
    """

    rank: int
    kinds: dict[str, NDArray[np.int64]]
    host: str
    calls: tuple[Call, ...]
    exchanges: tuple[Exchanges, ...]


def recognise(file: GraphFile) -> bool:
    """Whether the first line begins as that of a profile."""
    return bool(_HEADING.match(file.head))


def read(file: GraphFile) -> EdgeList:
    """Read the graph of moved bytes; collectives count by the messages that the library sent for them.

    :raises GraphFileError: if a line is wrong or a rank has none; the message names the file and, if known, the line.
    """
    lines = list(file.lines("", empty=True))
    head = head_of(file.name, lines[0][1])
    size = head.size
    if head.granularity != "process":
        raise GraphFileError(f"{file.name}: expecting a profile by process, got one by {head.granularity}")
    rows = [np.empty((0, 4), dtype=np.int64)]
    ranks = set()
    for number, line in lines[1:]:
        rank, kinds, *_ = rank_of(file.name, number, line, size)
        ranks.add(rank)
        for letter, (peer, messages, volume) in kinds.items():
            own = np.full_like(peer, rank)
            ends = (peer, own) if letter == "R" else (own, peer)
            if letter in head.moves:
                rows.append(np.stack((*ends, volume, messages), axis=1))
    if absent := sorted(set(range(size)) - ranks):
        raise GraphFileError(f"{file.name}: expecting a line for each of {size} ranks, got none for {absent[0]}")
    source, target, volume, count = np.concatenate(rows).T
    return EdgeList(file.name, size, True, source, target, volume, count)


def head_of(name: str, line: str) -> Head:
    """Parse the first line.

    :param name: name of the file, for error messages.
    :param line: text of the line.
    :raises GraphFileError: if the line is wrong; the message names file and line.
    """
    if not _HEADING.match(line):
        _fail(name, 1, "a profile, as topompi profile writes it", line)
    head = _object(name, 1, line)
    if head.get("version") != VERSION:
        _fail(name, 1, f"a profile of version {VERSION}", line)
    size, hosts, seconds = head.get("ranks"), head.get("hosts") or [], head.get("seconds") or 0.0
    if type(size) is not int or not 1 <= size <= MAX_RANKS:
        _fail(name, 1, "ranks, their number, from 1", size)
    if not isinstance(hosts, list) or len(hosts) not in (0, size) or not all(isinstance(host, str) for host in hosts):
        _fail(name, 1, f"hosts to be a list of {size} names or empty", hosts)
    counting = head.get("counting", 0.0)
    for what, number in (("seconds", seconds), ("counting", counting)):
        if type(number) not in (int, float):
            _fail(name, 1, f"{what} to be a number", number)
    moves, granularity = head.get("moves", MOVES), head.get("granularity", "process")
    if not isinstance(moves, str) or set(moves) - set(KINDS):
        _fail(name, 1, f"moves to be letters of {''.join(KINDS)}", moves)
    if granularity not in RECORDED:
        _fail(name, 1, f"granularity to be one of {', '.join(RECORDED)}", granularity)
    method, command = str(head.get("method", "")), str(head.get("command", ""))
    how = moves, granularity, head.get("virtual") is True, float(counting), _view(name, head.get("view", {}))
    return Head(size, method, command, float(seconds), tuple(hosts), *how)


def _view(name: str, given: object) -> ProfileView:
    wanted = {"granularity": GRANULARITIES, "count": COUNTS}
    if not isinstance(given, dict) or any(value not in wanted.get(key, ()) for key, value in given.items()):
        _fail(
            name,
            1,
            f"view to have a granularity of {', '.join(GRANULARITIES)}, a count of {' or '.join(COUNTS)}",
            given,
        )
    return ProfileView(**given)


def rank_of(name: str, number: int, line: str, size: int) -> RankLine:
    """Parse a rank's line.

    :param name: name of the file, for error messages.
    :param number: line number, from 1.
    :param line: text of the line.
    :param size: number of ranks.
    :raises GraphFileError: if the line is wrong; the message names file and line.
    """
    found = _object(name, number, line)
    rank = found.get("rank")
    if type(rank) is not int or not 0 <= rank < size:
        _fail(name, number, f"rank to be one of {size}", rank)
    kinds = {}
    for letter in KINDS.keys() & found.keys():
        try:
            table = np.array(found[letter])
        except ValueError:
            _fail(name, number, f"{letter} to be three lists of one length", found[letter])
        if table.shape[:1] != (3,) or table.ndim != 2 or (table.size and table.dtype.kind != "i"):
            _fail(name, number, f"{letter} to be three lists of whole numbers, as many each", found[letter])
        if table.size and (table.min() < 0 or table[0].max() >= size):
            _fail(name, number, f"{letter} to name peers below {size} and no negative number", found[letter])
        kinds[letter] = table.astype(np.int64)
    host = found.get("host", "")
    if not isinstance(host, str):
        _fail(name, number, "host to be a name", host)
    in_order = {one: kinds[one] for one in KINDS if one in kinds}
    return RankLine(rank, in_order, host, _calls(name, number, found), _exchanges(name, number, found, size))


def _calls(name: str, number: int, found: dict[str, object]) -> tuple[Call, ...]:
    calls = found.get("calls", [])
    if not isinstance(calls, list):
        _fail(name, number, "calls to be a list", calls)
    for call in calls:
        sound = isinstance(call, list) and len(call) == 4 and isinstance(call[0], str)
        if not sound or not all(type(value) is int and value >= 0 for value in call[1:]):
            _fail(name, number, "calls to have a name, ranks, bytes and a count", call)
    return tuple(Call(*call) for call in calls)


def _exchanges(name: str, number: int, found: dict[str, object], size: int) -> tuple[Exchanges, ...]:
    rows = found.get("neighbours", [])
    if not isinstance(rows, list):
        _fail(name, number, "neighbours to be a list", rows)
    for row in rows:
        sound = isinstance(row, list) and len(row) == 8 and isinstance(row[0], str)
        sound = sound and all(isinstance(one, list) and len(one) == len(row[6]) for one in row[6:])
        if not sound or not all(type(value) is int and value >= 0 for value in (*row[1:6], *row[6], *row[7])):
            _fail(name, number, "neighbours to have a name, five whole numbers, and two lists of one length", row)
        if max((row[1], *row[6])) >= size:
            _fail(name, number, f"neighbours to name ranks below {size}", row)
    return tuple(Exchanges._make((*row[:6], tuple(row[6]), tuple(row[7]))) for row in rows)


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    found = parse_json(line, name, GraphFileError, line=number)
    if not isinstance(found, dict):
        _fail(name, number, "a JSON object", line)
    return found


def _fail(name: str, number: int, wanted: str, given: object) -> NoReturn:
    raise GraphFileError(f"{name}:{number}: expecting {wanted}, got {given!r:.60}")
