"""Schedules as time-independent traces for replay by SimGrid.

See https://simgrid.org/doc/latest/Tutorial_MPI_Applications.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from topompi.inputs.writing import open_output, write_text
from topompi.schedules import Schedule
from topompi.schedules.exports.goal import MessageEnd, Timeline

__all__ = ["BYTE", "write_traces"]

BYTE = 6  # SimGrid's number of MPI_BYTE in a trace (1 is MPI_INT, of 4 bytes)
MOST_BYTES = 2**31 - 1  # most bytes of a message, because the replay passes the count as a C int


def write_traces(schedule: Schedule, folder: str | Path, block_bytes: int = 1, *, name: str = "trace") -> Path:
    """Write one trace per rank (``rank-0.txt``, ...) and a file that lists them for ``smpirun -replay``.

    A rank posts all receives and sends of a step, and waits for them before it posts the next step. If the schedule
    declares its steps independent, it waits only for the step that is ``window`` of its steps earlier. The tag is the
    step. Local moves and reductions take no time in the replay.

    :param schedule: schedule to write.
    :param folder: folder of the files, made if it is missing. The list contains absolute paths.
    :param block_bytes: bytes per block.
    :param name: name of the list, whose file is ``NAME.list`` in the folder.
    :returns: path of the list.
    :raises ValueError: if a message has 2 GiB or more, which the replay cannot post.
    Cost: four lines per message; one trace is in memory at a time.
    """
    timeline = Timeline(schedule, block_bytes)
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    traces = [folder / f"rank-{rank}.txt" for rank in range(schedule.size)]
    for rank, trace in enumerate(traces):
        with open_output(trace) as file:
            file.writelines(f"{rank} {action}\n" for action in _actions(timeline, rank))
    listing = folder / f"{name}.list"
    write_text(listing, "".join(f"{trace}\n" for trace in traces))
    return listing


def _actions(timeline: Timeline, rank: int) -> Iterator[str]:
    """The lines of a rank's trace, without the rank's number in front."""
    in_flight: list[tuple[MessageEnd, ...]] = []
    yield "init"
    for step in timeline.of_rank(rank):
        if timeline.window and len(in_flight) == timeline.window:
            yield from _waits(rank, in_flight.pop(0))
        yield from map(_post, step.lines)
        in_flight.append(step.lines)
    for lines in in_flight:
        yield from _waits(rank, lines)
    yield "finalize"


def _post(line: MessageEnd) -> str:
    if line.nbytes > MOST_BYTES:
        raise ValueError(f"expecting messages below 2 GiB, got {line.nbytes} bytes in step {line.step}")
    return f"{'isend' if line.sends else 'irecv'} {line.peer} {line.step} {line.nbytes} {BYTE}"


def _waits(rank: int, lines: tuple[MessageEnd, ...]) -> Iterator[str]:
    # One wait per message, because waitall would also wait for the steps that may stay in flight.
    for line in lines:
        source, destination = (rank, line.peer) if line.sends else (line.peer, rank)
        yield f"wait {source} {destination} {line.step}"
