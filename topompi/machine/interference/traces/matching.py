"""The matching of a trace's sends and receives, whose sizes, tags and senders may differ or be unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....netsim import COMPUTE, RECEIVE, SEND, Program
from ..errors import InterferenceError

__all__ = ["ANY", "program_of"]

Integers = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
ANY = -1_000_000_000  # peer or tag of a receive that takes a message of any sender or tag


def program_of(
    name: str, size: int, columns: Columns, place: Callable[[int], str], *, partial: bool = False
) -> tuple[Program, list[str]]:
    """Make a program of a trace's operations, and list the oddities that were resolved.

    A receive has the bytes of its send; the trace's number is the room of its buffer. A receive of any sender gets one
    of the sends that no other receive takes, by their position in their sender's trace. Messages between two ranks
    match by their tags; if their tags do not agree, in order.

    :param name: name of the trace.
    :param size: number of ranks.
    :param columns: columns of ``columns_of``.
    :param place: function that gives the file and line of an operation.
    :param partial: whether wrong messages are left out and counted; else they are errors.
    :raises InterferenceError: if a send or a receive has no partner, or a receive has too little room.
    """
    notes: list[str] = []
    faults = _Faults(columns, place, partial)
    _require_peers(size, columns, faults)
    if count := _name_senders(columns):
        notes.append(f"{count} receives of any sender: each got the earliest send that no other receive takes")
    if count := _level_tags(size, columns):
        notes.append(f"{count} pairs of ranks whose tags do not agree: their messages match in order")
    _require_partners(size, columns, faults)
    send, receive = (_sorted(size, columns, kind) for kind in (SEND, RECEIVE))
    room, sent = columns["amount"][receive], columns["amount"][send]
    of_program = columns["tag"][receive] >= 0  # a root knows the sizes of a collective, and others may not
    short = np.flatnonzero(of_program & (room < sent))
    lack = {int(receive[at]): f"expecting room for {sent[at]:g} bytes, got {room[at]:g}" for at in short.tolist()}
    faults.tell(lack)
    columns["amount"][receive] = sent
    given: dict[str, Any] = {key: columns[key] for key in ("rank", "step", "kind", "peer", "amount", "tag", "after")}
    return Program(np.arange(size), window=0, name=name, **given), [*notes, *faults.notes]


class _Faults:
    """Wrong operations, which are errors or are counted.

    :param columns: columns of the trace.
    :param place: function that gives the file and line of an operation.
    :param partial: whether they are counted.
    """

    def __init__(self, columns: Columns, place: Callable[[int], str], partial: bool) -> None:
        self.columns, self.place, self.partial = columns, place, partial
        self.notes: list[str] = []

    def tell(self, wrong: dict[int, str], done: str = "taken as they are") -> None:
        """Raise the error of the first operation, or note all.

        :param wrong: fault of each wrong operation, by its row.
        :param done: words for the treatment of wrong operations that are no errors.
        """
        if not wrong:
            return
        row = min(wrong)
        text = f"{self.place(row)}: {wrong[row]}"
        if not self.partial:
            raise InterferenceError(text)
        self.notes.append(f"{len(wrong)} messages {done}, the first {text}")

    def drop(self, wrong: dict[int, str]) -> None:
        """Raise the error of the first operation, or replace all by bursts of 0 s, so that steps keep their numbers."""
        self.tell(wrong, "left out")
        rows = list(wrong)
        self.columns["kind"][rows], self.columns["amount"][rows] = COMPUTE, 0.0


def _require_peers(size: int, columns: Columns, faults: _Faults) -> None:
    peer, message = columns["peer"], (columns["kind"] == SEND) | (columns["kind"] == RECEIVE)
    known = (columns["kind"] == RECEIVE) & (peer == ANY)
    wrong = np.flatnonzero(message & ~known & ((peer < 0) | (peer >= size) | (peer == columns["rank"])))
    faults.drop({row: f"expecting another rank in range({size}), got {peer[row]}" for row in wrong.tolist()})


def _require_partners(size: int, columns: Columns, faults: _Faults) -> None:
    """Refuse or leave out sends without a receive, and receives without a send."""
    rows = [_sorted(size, columns, kind) for kind in (SEND, RECEIVE)]
    keys = [_keys(size, columns, of_kind) for of_kind in rows]
    if len(rows[0]) == len(rows[1]) and (keys[0] == keys[1]).all():
        return
    counts, alone = [Counter(of.tolist()) for of in keys], dict[int, str]()
    for mine, of, others in zip(rows, keys, counts[::-1], strict=True):
        left = others.copy()
        for row, key in zip(mine.tolist(), of.tolist(), strict=True):
            left[key] -= 1
            if left[key] < 0:
                alone[row] = _lonely(columns, row)
    faults.drop(alone)


def _lonely(columns: Columns, row: int) -> str:
    sends = columns["kind"][row] == SEND
    partner, way = ("receive", "to") if sends else ("send", "from")
    peer = "any rank" if columns["peer"][row] == ANY else f"rank {columns['peer'][row]}"
    return f"expecting a {partner} for this message {way} {peer}, got none"


def _name_senders(columns: Columns) -> int:
    """Give each receive of any sender a sender, and return the number of these receives."""
    open_receives = np.flatnonzero((columns["kind"] == RECEIVE) & (columns["peer"] == ANY))
    if not len(open_receives):
        return 0
    here = np.unique(columns["rank"][open_receives])
    sends = np.flatnonzero((columns["kind"] == SEND) & np.isin(columns["peer"], here))
    named = np.flatnonzero((columns["kind"] == RECEIVE) & (columns["peer"] != ANY))
    taken = Counter(zip(*(columns[key][named].tolist() for key in ("peer", "rank", "tag")), strict=True))
    left: dict[int, list[int]] = {}
    for row in sends[::-1].tolist():  # named receives take the last sends
        key = (int(columns["rank"][row]), int(columns["peer"][row]), int(columns["tag"][row]))
        if taken[key]:
            taken[key] -= 1
        else:
            left.setdefault(key[1], []).append(row)
    for rows in left.values():
        rows.sort(key=lambda row: (columns["step"][row], row))
    for row in open_receives.tolist():
        tag = columns["tag"][row]
        sent = left.get(int(columns["rank"][row]), [])
        first = next((at for at, one in enumerate(sent) if tag in (ANY, columns["tag"][one])), None)
        if first is not None:
            found = sent.pop(first)
            columns["peer"][row], columns["tag"][row] = columns["rank"][found], columns["tag"][found]
    return len(open_receives)


def _level_tags(size: int, columns: Columns) -> int:
    """Set the tags to 0 between ranks whose sends and receives differ in them; return the number of these pairs.

    If there are fewer receives than sends, or more, the tags stay, because they tell which message is alone.
    """
    send, receive = (_sorted(size, columns, kind) for kind in (SEND, RECEIVE))
    pairs = [_pairs(size, columns, rows) for rows in (send, receive)]
    tags = [columns["tag"][rows] for rows in (send, receive)]
    if len(send) == len(receive) and (pairs[0] == pairs[1]).all() and (tags[0] == tags[1]).all():
        return 0
    rows, pair = np.concatenate((send, receive)), np.concatenate(pairs)
    keys = np.stack((pair, np.concatenate(tags)))
    _, which = np.unique(keys, axis=1, return_inverse=True)
    balance = np.bincount(which.ravel(), np.repeat([1.0, -1.0], [len(send), len(receive)]))
    odd = np.unique(pair[balance[which.ravel()] != 0])
    tag, of_pair = columns["tag"][rows], np.unique(pair, return_inverse=True)[1].ravel()
    lack = np.bincount(of_pair, np.repeat([1.0, -1.0], [len(send), len(receive)])) != 0
    any_tag = np.bincount(of_pair, tag == ANY) > 0
    odd = np.setdiff1d(odd, pair[(lack & ~any_tag)[of_pair]])
    columns["tag"][rows[np.isin(pair, odd) & ((tag >= 0) | (tag == ANY))]] = 0  # tags below 0 are those of collectives
    return len(odd)


def _ends(columns: Columns, rows: Integers) -> tuple[Integers, Integers]:
    """The sending and receiving rank of each row; all rows are sends, or all are receives."""
    ends = columns["rank"][rows], columns["peer"][rows]
    return ends if len(rows) and columns["kind"][rows[0]] == SEND else ends[::-1]


def _pairs(size: int, columns: Columns, rows: Integers) -> Integers:
    source, destination = _ends(columns, rows)
    return source * size + destination


def _sorted(size: int, columns: Columns, kind: int) -> Integers:
    """Rows of a kind by sender, receiver, tag and order."""
    rows = np.flatnonzero(columns["kind"] == kind)
    return rows[np.lexsort((columns["tag"][rows], _pairs(size, columns, rows)))]


def _keys(size: int, columns: Columns, rows: Integers) -> Integers:
    """Sender, receiver and tag of each row as one number."""
    low = int(columns["tag"].min(initial=0))
    span = int(columns["tag"].max(initial=0)) - low + 1
    return _pairs(size, columns, rows) * span + columns["tag"][rows] - low
