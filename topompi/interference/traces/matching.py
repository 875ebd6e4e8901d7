"""The matching of a trace's sends and receives, whose sizes, tags and senders may differ or be unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...netsim import RECEIVE, SEND, Program
from ..errors import InterferenceError

__all__ = ["ANY", "program_of"]

Integers = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]
ANY = -1_000_000_000  # peer or tag of a receive that takes a message of any sender or tag


def program_of(name: str, size: int, columns: Columns, place: Callable[[int], str]) -> tuple[Program, list[str]]:
    """Make a program of a trace's operations, and list the oddities that were resolved.

    A receive has the bytes of its send; the trace's number is the room of its buffer. A receive of any sender gets one
    of the sends that no other receive takes, by their position in their sender's trace. Messages between two ranks
    match by their tags; if their tags do not agree, in order.

    :param name: name of the trace.
    :param size: number of ranks.
    :param columns: columns of ``columns_of``.
    :param place: function that gives the file and line of an operation.
    :raises InterferenceError: if a send or a receive has no partner, or a receive has too little room.
    """
    notes: list[str] = []
    _require_peers(size, columns, place)
    if count := _name_senders(columns):
        notes.append(f"{count} receives of any sender: each got the earliest send that no other receive takes")
    if count := _level_tags(size, columns):
        notes.append(f"{count} pairs of ranks whose tags do not agree: their messages match in order")
    send, receive = (_sorted(size, columns, kind) for kind in (SEND, RECEIVE))
    keys = [_keys(size, columns, rows) for rows in (send, receive)]
    if len(send) != len(receive) or (keys[0] != keys[1]).any():
        raise InterferenceError(_lonely(size, columns, (send, receive), keys, place))
    room, sent = columns["amount"][receive], columns["amount"][send]
    of_program = columns["tag"][receive] >= 0  # a root knows the sizes of a collective, and others may not
    if (short := np.flatnonzero(of_program & (room < sent))).size:
        row = int(receive[short[0]])
        raise InterferenceError(f"{place(row)}: expecting room for {sent[short[0]]:g} bytes, got {room[short[0]]:g}")
    columns["amount"][receive] = sent
    given: dict[str, Any] = {key: columns[key] for key in ("rank", "step", "kind", "peer", "amount", "tag", "after")}
    return Program(np.arange(size), window=0, name=name, **given), notes


def _require_peers(size: int, columns: Columns, place: Callable[[int], str]) -> None:
    peer, message = columns["peer"], (columns["kind"] == SEND) | (columns["kind"] == RECEIVE)
    known = (columns["kind"] == RECEIVE) & (peer == ANY)
    wrong = message & ~known & ((peer < 0) | (peer >= size) | (peer == columns["rank"]))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InterferenceError(f"{place(row)}: expecting another rank in range({size}), got {peer[row]}")


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
    """Set the tags to 0 between ranks whose sends and receives differ in them; return the number of these pairs."""
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
    tag = columns["tag"][rows]
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


def _lonely(
    size: int, columns: Columns, rows: tuple[Integers, Integers], keys: list[Integers], place: Callable[[int], str]
) -> str:
    """The error for the first operation of the trace that has no partner."""
    counts = [Counter(of.tolist()) for of in keys]
    alone = []
    for mine, of, others in zip(rows, keys, counts[::-1], strict=True):
        for row, key in zip(mine.tolist(), of.tolist(), strict=True):
            others[key] -= 1
            if others[key] < 0:
                alone.append(row)
    row = min(alone)
    sends = columns["kind"][row] == SEND
    partner = "receive" if sends else "send"
    peer = "any rank" if columns["peer"][row] == ANY else f"rank {columns['peer'][row]}"
    where = f"{'to' if sends else 'from'} {peer}"
    return f"{place(row)}: expecting a {partner} for this message {where}, got none"
