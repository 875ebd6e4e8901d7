"""The rules that concern each row of a schedule alone."""

from __future__ import annotations

import numpy as np

from ..schedule import COPY, INPUT, REDUCE, SCRATCH, Schedule
from .error import Violation, first_of, first_row
from .places import BUFFERS, BlockPlaces

__all__ = ["malformed"]


def malformed(schedule: Schedule, places: BlockPlaces) -> Violation | None:
    """The violation by the first row with an unknown rank, buffer or block, or a write to the input; None if none has.

    The scratch buffers in ``places`` are extended to the blocks that the rows use.
    """
    found = first_of(_unknown(schedule), _forbidden(schedule, places))
    rows = found.row if found else schedule.num_rows
    outside = _outside(schedule, places, rows)
    places.reach(outside.row if outside else rows)
    return outside or found


def _unknown(schedule: Schedule) -> Violation | None:
    """The violation by the first row with an unknown rank, buffer or operation, or a wrong count; None if none has."""
    ranks = range(schedule.size)
    known = {
        "source": ranks,
        "destination": ranks,
        "source_buffer": range(len(BUFFERS)),
        "destination_buffer": range(len(BUFFERS)),
        "operation": range(COPY, REDUCE + 1),
        "count": range(np.iinfo(np.int32).max),
    }
    found = None
    for name, allowed in known.items():
        column = getattr(schedule, name)[: found.row if found else schedule.num_rows]
        row = first_row((column < allowed.start) | (column >= allowed.stop))
        if row is not None:
            wanted = "at least 0" if name == "count" else f"in {allowed}"
            found = Violation(row, f"expecting {name.replace('_', ' ')} {wanted}, got {column[row]}")
    return found


def _forbidden(schedule: Schedule, places: BlockPlaces) -> Violation | None:
    """The violation by the first row that writes to the input, or that reduces in a collective of copies, or None."""
    return first_of(_into_input(schedule), None if places.reduces else _reducing(schedule))


def _into_input(schedule: Schedule) -> Violation | None:
    row = first_row(schedule.destination_buffer == INPUT)
    if row is None:
        return None
    block, rank = schedule.destination_block[row], schedule.destination[row]
    return Violation(row, f"writes input block {block} of rank {rank}, and the input is never written")


def _reducing(schedule: Schedule) -> Violation | None:
    row = first_row(schedule.operation == REDUCE)
    return None if row is None else Violation(row, f"reduces, and {schedule.collective} only copies")


def _outside(schedule: Schedule, places: BlockPlaces, rows: int) -> Violation | None:
    """The violation by the first row that reads or writes beyond a buffer's end; None if none does."""
    found = None
    for side, verb in (("source", "reads"), ("destination", "writes")):
        rows = found.row if found else rows
        rank, buffer, block = (getattr(schedule, side + part)[:rows] for part in ("", "_buffer", "_block"))
        length = places.blocks[buffer, rank]
        end = block.astype(np.int64) + schedule.count[:rows]
        row = first_row((block < 0) | ((end > length) & (buffer != SCRATCH)))
        if row is not None:
            name = f"{BUFFERS[buffer[row]]} of rank {rank[row]}"
            extent = "" if buffer[row] == SCRATCH else f", which has {length[row]}"
            if not length[row] and buffer[row] == INPUT:
                extent += "; a rank that forwards reads its output, buffer 1"
            found = Violation(row, f"{verb} blocks {block[row]}:{end[row]} of the {name}{extent}")
    return found
