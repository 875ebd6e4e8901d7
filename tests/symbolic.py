"""The effect of a schedule, computed slowly with dictionaries: the oracle of the checker's tests."""

import random
from collections import Counter, defaultdict, deque

from topompi.schedules.schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule

__all__ = ["Refused", "inputs", "interleave", "run", "wanted"]

REDUCING = ("reduce", "reduce_scatter", "allreduce")


class Refused(Exception):  # noqa: N818 - a verdict, not an error
    """The schedule is wrong; from which step on, None where only its end is."""

    def __init__(self, step: int | None) -> None:
        self.step = step


def shares(schedule: Schedule) -> list:
    """Blocks of each rank, or of each pair."""
    p, b = schedule.size, schedule.blocks
    if schedule.counts is not None:
        return schedule.counts.tolist()
    return [[b] * p] * p if schedule.collective == "alltoall" else [b] * p


def inputs(schedule: Schedule, rank: int) -> int:
    """Number of blocks that a rank has."""
    n, name, root = shares(schedule), schedule.collective, rank == schedule.root
    if name in ("reduce", "allreduce") or (name == "bcast" and root):
        return schedule.blocks
    if name in ("gather", "allgather"):
        return n[rank]
    if name == "alltoall":
        return sum(n[rank])
    return sum(n) if name == "reduce_scatter" or (name == "scatter" and root) else 0


def wanted(schedule: Schedule, rank: int) -> list:
    """What MPI says a rank shall have: the (rank, block) that each block of its output comes from; in reductions the
    number of the block that is combined."""
    n, p, b = shares(schedule), range(schedule.size), schedule.blocks
    root = rank == schedule.root
    if schedule.collective == "bcast":
        return [(schedule.root, k) for k in range(b)]
    if schedule.collective == "allgather" or (schedule.collective == "gather" and root):
        return [(r, k) for r in p for k in range(n[r])]
    if schedule.collective == "scatter":
        return [(schedule.root, sum(n[:rank]) + k) for k in range(n[rank])]
    if schedule.collective == "alltoall":
        return [(r, sum(n[r][:rank]) + k) for r in p for k in range(n[r][rank])]
    if schedule.collective == "reduce_scatter":
        return [sum(n[:rank]) + k for k in range(n[rank])]
    return list(range(b)) if schedule.collective == "allreduce" or root else []


def rows_of(schedule: Schedule) -> list[tuple[int, ...]]:
    """The rows as tuples of Python integers."""
    return list(zip(*(column.tolist() for column in schedule.columns().values()), strict=True))


def run(schedule: Schedule, commutative: bool = True) -> None:
    """Run step by step, in order; raises Refused at the first step that breaks a rule."""
    rows = rows_of(schedule)
    state = {(r, INPUT, k): [(r, k)] for r in range(schedule.size) for k in range(inputs(schedule, r))}
    writers: dict = defaultdict(set)
    for step in sorted({row[0] for row in rows}):
        now = [row for row in rows if row[0] == step]
        if not all(well_formed(schedule, row) for row in now):
            raise Refused(step)
        state = one_step(schedule, state, now, commutative)
        for _, write, _, _ in moves(now):
            writers[write].add(step)
        if schedule.independent and any(len(writers[write]) > 1 for _, write, _, _ in moves(now)):
            raise Refused(step)
    for rank in range(schedule.size):
        for block, want in enumerate(wanted(schedule, rank)):
            got = state.get((rank, OUTPUT, block))
            if got is None or not same(schedule, got, want, commutative):
                raise Refused(None)


def same(schedule: Schedule, got: list, want: object, commutative: bool) -> bool:
    """Whether a value is what is wanted."""
    if schedule.collective not in REDUCING:
        return got == [want]
    everyone = [(r, want) for r in range(schedule.size)]
    return sorted(got) == everyone if commutative else got == everyone


def well_formed(schedule: Schedule, row: tuple[int, ...]) -> bool:
    """Whether all that a row names is there, and is what it may name."""
    _, source, destination, from_buffer, first, to_buffer, last, count, operation = row
    ranks = range(schedule.size)
    if source not in ranks or destination not in ranks or operation not in (0, 1) or count < 0:
        return False
    if from_buffer not in (0, 1, 2) or to_buffer not in (OUTPUT, SCRATCH) or min(first, last) < 0:
        return False
    room = {INPUT: inputs(schedule, source), OUTPUT: len(wanted(schedule, source)), SCRATCH: 10**9}
    if first + count > room[from_buffer]:
        return False
    room = {OUTPUT: len(wanted(schedule, destination)), SCRATCH: 10**9}
    return last + count <= room[to_buffer] and (operation != REDUCE or schedule.collective in REDUCING)


def moves(rows: list[tuple[int, ...]]) -> list[tuple]:
    """What each row reads and writes, block by block: (read, write, operation, row)."""
    return [
        ((row[1], row[3], row[4] + k), (row[2], row[5], row[6] + k), row[8], number)
        for number, row in enumerate(rows)
        for k in range(row[7])
    ]


def one_step(schedule: Schedule, state: dict, rows: list[tuple[int, ...]], commutative: bool) -> dict:
    """The state behind a step, and the rules on what may meet in one."""
    now, after = moves(rows), dict(state)
    step = rows[0][0]
    for mine, (read, write, operation, row) in enumerate(now):
        if read not in state or (operation == REDUCE and write not in state):
            raise Refused(step)
        if schedule.independent and read[1] != INPUT:
            raise Refused(step)
        for other, (other_read, other_write, other_operation, other_row) in enumerate(now):
            shared = commutative and operation == other_operation == REDUCE
            if other != mine and other_write == write and not shared:
                raise Refused(step)
            if other_row != row and other_read == write:
                raise Refused(step)
        after[write] = combine(after[write], state[read], commutative) if operation == REDUCE else state[read]
    return after


def combine(here: list, new: list, commutative: bool) -> list:
    """A reduction: the union; in order, where the one continues the other, on whichever side that is."""
    if commutative:
        return here + new
    for left, right in ((here, new), (new, here)):
        if left[-1] and right[0] and left[-1][0] + 1 == right[0][0] and left[-1][1] == right[0][1]:
            return left + right
    return [None]


def interleave(schedule: Schedule, seed: int) -> None:
    """Run as ranks without a barrier do, in some order of events; raises Refused for a wrong end or a deadlock.

    A rank posts all its rows of a step when it enters it, and enters the next when they are complete, or, where steps
    are independent, when fewer than ``window`` are not. Messages of a pair match in the order in which they are
    posted; a message reads its source and writes its destination at any moment when both are posted.
    """
    chance = random.Random(seed)
    rows = rows_of(schedule)
    limit = (schedule.window or len(rows) + 1) if schedule.independent else 1
    state = {(r, INPUT, k): Counter([(r, k)]) for r in range(schedule.size) for k in range(inputs(schedule, r))}
    to_enter = {r: deque(sorted({row[0] for row in rows if r in row[1:3]})) for r in range(schedule.size)}
    open_rows: dict = {r: Counter() for r in to_enter}
    sends: dict = defaultdict(deque)
    receives: dict = defaultdict(deque)
    while True:
        ready = [r for r in to_enter if to_enter[r] and len(open_rows[r]) < limit]
        matched = [pair for pair in sends if sends[pair] and receives[pair]]
        if not ready and not matched:
            break
        if matched and (not ready or chance.random() < 0.5):
            pair = chance.choice(matched)
            row = sends[pair].popleft()
            if receives[pair].popleft() != row:
                raise Refused(row[0])
            transfer(state, row)
            for rank in set(pair):
                open_rows[rank] -= Counter([row[0]])
        else:
            rank = chance.choice(ready)
            step = to_enter[rank].popleft()
            for row in (row for row in rows if row[0] == step and rank in row[1:3]):
                open_rows[rank][step] += 1
                for end, queue in ((row[1], sends), (row[2], receives)):
                    if end == rank:
                        queue[row[1:3]].append(row)
    if any(to_enter.values()) or any(open_rows.values()):
        raise Refused(None)
    for rank in range(schedule.size):
        for block, want in enumerate(wanted(schedule, rank)):
            got = list(state.get((rank, OUTPUT, block), Counter()).elements())
            if not same(schedule, got, want, commutative=True):
                raise Refused(None)


def transfer(state: dict, row: tuple[int, ...]) -> None:
    """Move the blocks of one row, all read before the first is written."""
    found = [(write, state.get(read, Counter()), operation) for read, write, operation, _ in moves([row])]
    for write, value, operation in found:
        state[write] = state.get(write, Counter()) + value if operation == REDUCE else value
