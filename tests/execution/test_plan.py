"""Plans: compiling a schedule for a rank. (``test_matrix`` runs them.)"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mpi.execution.plan import ARRIVED, PlanPart, compile_part
from topompi.schedules import ALGORITHMS, make
from topompi.schedules.schedule import INPUT, OUTPUT, REDUCE, SCRATCH
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of


def network(size):
    fabric = load("xgft:2,2,2;1,1,1")
    hosts = [fabric.fabric.hosts[rank // 2 % 8] for rank in range(size)]
    return network_of(TopologyInterface.place(hosts, fabric.routes, virtual=True))


def parts(schedule):
    rows = np.stack(list(schedule.columns().values()), axis=1).astype(np.int64)
    for rank in range(schedule.size):
        mine = schedule.of_rank(rank)
        precedes = np.ones(len(mine), dtype=bool)
        yield PlanPart(rank, rows[mine], precedes, schedule.blocks, schedule.independent, schedule.window)


@st.composite
def schedules_of_all_kinds(draw):
    collective = draw(st.sampled_from([name for name in ALGORITHMS if name != "fft"]))
    algorithm = draw(st.sampled_from(list(ALGORITHMS[collective])))
    size = draw(st.integers(1, 9))
    return make(collective, algorithm, network(size), root=draw(st.integers(0, size - 1)))


DIVIDED = ("bcast", "reduce", "allreduce", "scan", "exscan")


@examples(150)
@given(schedules_of_all_kinds(), st.integers(0, 40))
def test_both_ends_agree_on_every_message(schedule, length):
    """Each rank compiles its own rows, and the messages that two ranks see between them are the same, in one order."""
    divided = length if schedule.collective in DIVIDED else None
    plans = [compile_part(part, divided) for part in parts(schedule)]
    ends = {}
    for rank, plan in enumerate(plans):
        for step in plan.steps:
            for one in step.sends:
                ends.setdefault((rank, one.peer), ([], []))[0].append(one.length)
            for one in step.receives:
                ends.setdefault((one.peer, rank), ([], []))[1].append(one.length)
    assert all(sent == received for sent, received in ends.values())


def sliced(collective, name):
    return ALGORITHMS[collective][name].cut == "slices"


@examples(60)
@given(
    st.sampled_from([(c, name) for c in ALGORITHMS if c != "fft" for name in ALGORITHMS[c] if sliced(c, name)]),
    st.data(),
)
def test_both_ends_agree_on_every_message_of_transfers_that_are_cut(kind, data):
    """And a rank's step of a slice has what its step of the schedule has: all slices together are the whole."""
    size, slices, units = (data.draw(st.integers(*ends)) for ends in ((2, 9), (2, 6), (0, 20)))
    schedule = make(*kind, network(size), root=0)
    divided = units if schedule.collective in DIVIDED else None
    scale = 1 if divided is not None else max(units, 1)
    ends = {}
    for rank, part in enumerate(parts(schedule)):
        plan, whole = (compile_part(part, divided, None, some, scale) for some in (slices, 1))
        assert plan.slices == (1 if schedule.independent else slices)
        assert volume(plan) == volume(whole)
        for number, step in enumerate(plan.steps):
            for one in step.sends:
                ends.setdefault((rank, one.peer), ([], []))[0].append((number % plan.slices, one.length))
            for one in step.receives:
                ends.setdefault((one.peer, rank), ([], []))[1].append((number % plan.slices, one.length))
    assert all(sent == received for sent, received in ends.values())


def volume(plan):
    return [
        sum(one.length for step in plan.steps for one in some(step))
        for some in (lambda s: s.sends, lambda s: s.receives)
    ]


@examples(150)
@given(schedules_of_all_kinds(), st.integers(1, 40))
def test_plans_run_by_hand_do_what_mpi_defines(schedule, length):
    """All plans of a schedule on plain arrays, in steps of all ranks at once, against sums and concatenations."""
    divided = length if schedule.collective in DIVIDED else None
    compiled = list(parts(schedule))
    results = simulate([compile_part(part, divided) for part in compiled], schedule, divided)
    size, root = schedule.size, schedule.root
    inputs = [data(rank, schedule, divided) for rank in range(size)]
    total = sum(inputs) if schedule.collective in ("reduce", "allreduce", "reduce_scatter") else None
    for rank, result in enumerate(results):
        if schedule.collective in ("gather", "reduce") and rank != root:
            continue
        wanted = {
            "bcast": lambda: inputs[root],
            "gather": lambda: np.concatenate(inputs),
            "scatter": lambda rank=rank: inputs[root][rank : rank + 1],
            "allgather": lambda: np.concatenate(inputs),
            "reduce": lambda: total,
            "allreduce": lambda: total,
            "reduce_scatter": lambda rank=rank: total[rank : rank + 1],
            "alltoall": lambda rank=rank: np.array([one[rank] for one in inputs]),
            "scan": lambda rank=rank: sum(inputs[: rank + 1]),
            "barrier": lambda: np.empty(0),
            "exscan": lambda rank=rank: sum(inputs[1:rank], inputs[0]) if rank else inputs[0][:0],
        }[schedule.collective]()
        assert (result[: len(wanted)] == wanted).all()


def data(rank, schedule, divided):
    many = schedule.size if schedule.collective in ("scatter", "alltoall", "reduce_scatter") else 1
    return 1000 * rank + np.arange(many if divided is None else divided)


def simulate(plans, schedule, divided):
    """Rounds in which each rank that can do its next step does: messages wait in queues of their pairs."""
    size = schedule.size
    extent = size if divided is None else divided
    memory = [
        {
            INPUT: data(rank, schedule, divided),
            OUTPUT: np.full(extent, -1),
            SCRATCH: np.full(plan.scratch, -1),
            ARRIVED: np.full(plan.arrived, -1),
        }
        for rank, plan in enumerate(plans)
    ]
    queues = {}
    at, sent = [0] * size, [-1] * size
    while any(at[rank] < len(plan.steps) for rank, plan in enumerate(plans)):
        moved = False
        for rank, plan in enumerate(plans):
            if at[rank] == len(plan.steps):
                continue
            step, own = plan.steps[at[rank]], memory[rank]
            if sent[rank] < at[rank]:
                sent[rank], moved = at[rank], True
                for some in step.moves:
                    for begin, to, length in zip(some.begin, some.to, some.length, strict=True):
                        own[some.destination][to : to + length] = own[some.source][begin : begin + length]
                for one in step.sends:
                    piece = own[one.buffer][one.begin : one.begin + one.length].copy()
                    queues.setdefault((rank, one.peer), []).append(piece)
            wanted = {}
            for one in step.receives:
                wanted[one.peer] = wanted.get(one.peer, 0) + 1
            if any(len(queues.get((peer, rank), [])) < number for peer, number in wanted.items()):
                continue
            for one in step.receives:
                own[one.buffer][one.begin : one.begin + one.length] = queues[one.peer, rank].pop(0)
            for one in step.reductions:
                new = own[one.buffer][one.begin : one.begin + one.length]
                own[one.held_buffer][one.held_begin : one.held_begin + one.length] += new
            at[rank], moved = at[rank] + 1, True
        assert moved, "no rank can go on"
    return [own[OUTPUT] for own in memory]


def row(step, source, destination, here, begin, there, to, count, operation=0):
    return [step, source, destination, here, begin, there, to, count, operation]


def part_of_rows(rank, *rows, blocks=1, independent=False, window=1):
    table = np.array(rows, dtype=np.int64).reshape(-1, 9)
    return PlanPart(rank, table, np.ones(len(table), dtype=bool), blocks, independent, window)


def test_transfers_that_go_on_at_both_ends_are_one_message():
    rows = [row(0, 0, 1, INPUT, block, OUTPUT, block + 5, 1) for block in range(4)]
    (step,) = compile_part(part_of_rows(0, *rows)).steps
    assert [(one.peer, one.begin, one.length) for one in step.sends] == [(1, 0, 4)]
    rows[2] = row(0, 0, 1, INPUT, 2, OUTPUT, 9, 1)
    (step,) = compile_part(part_of_rows(0, *rows)).steps
    assert [(one.begin, one.length) for one in step.sends] == [(0, 2), (2, 1), (3, 1)]


def test_what_has_no_length_is_not_sent_and_a_token_is():
    rows = [row(0, 0, 1, INPUT, block, OUTPUT, block, 1) for block in (0, 1)]
    part = part_of_rows(0, *rows, row(1, 0, 2, INPUT, 0, OUTPUT, 0, 0), blocks=4)
    steps = compile_part(part, length=2).steps
    assert [(one.peer, one.length) for step in steps for one in step.sends] == [(1, 1), (2, 0)]


def test_a_divided_vector_keeps_the_numbers_of_its_blocks():
    with pytest.raises(ValueError, match="keep their numbers"):
        compile_part(part_of_rows(0, row(0, 0, 1, INPUT, 0, SCRATCH, 1, 1), blocks=2), length=8)


def test_a_plan_says_whether_it_overwrites_input_that_shares_memory_with_the_output():
    stays = row(0, 0, 0, INPUT, 0, OUTPUT, 3, 1)
    sends, receives = row(1, 0, 1, INPUT, 0, OUTPUT, 0, 1), row(2, 1, 0, INPUT, 0, OUTPUT, 0, 1)
    plan = compile_part(part_of_rows(0, stays, sends, receives), shift=3)
    assert not plan.overwrites
    assert not any(step.moves for step in plan.steps)
    late = row(3, 0, 1, INPUT, 0, OUTPUT, 1, 1)
    assert compile_part(part_of_rows(0, stays, sends, receives, late), shift=3).overwrites
    assert compile_part(part_of_rows(0, stays, sends, receives, independent=True, window=2), shift=3).overwrites
    assert any(step.moves for step in compile_part(part_of_rows(0, stays), shift=2).steps)


def test_steps_that_may_all_overlap_are_one():
    rows = [row(step, 0, step + 1, INPUT, step, OUTPUT, 0, 1) for step in range(4)]
    assert len(compile_part(part_of_rows(0, *rows, independent=True, window=0)).steps) == 1
    assert len(compile_part(part_of_rows(0, *rows, independent=True, window=4)).steps) == 1
    assert len(compile_part(part_of_rows(0, *rows, independent=True, window=5)).steps) == 1
    assert compile_part(part_of_rows(0, *rows, independent=True, window=3)).window == 3
    assert compile_part(part_of_rows(0, *rows)).window == 1


def test_a_step_of_messages_that_are_cut_receives_and_sends_a_part_of_each():
    """Else a rank would not send before it has received, and the others would wait for it in a chain."""
    rows = [
        row(step, *pair, INPUT, 0, OUTPUT, 0, 1) for step, peer in enumerate((1, 2)) for pair in ((0, peer), (peer, 0))
    ]
    plan = compile_part(part_of_rows(0, *rows, independent=True, window=1), slices=3, scale=6)
    assert [(len(step.receives), len(step.sends)) for step in plan.steps] == [(1, 1)] * 6
    assert plan.window == 3


def test_reductions_of_one_step_arrive_side_by_side():
    rows = [row(0, source, 0, INPUT, 0, OUTPUT, 0, 2, REDUCE) for source in (1, 2)]
    plan = compile_part(part_of_rows(0, *rows))
    assert plan.arrived == 4
    assert [(one.buffer, one.begin) for one in plan.steps[0].receives] == [(ARRIVED, 0), (ARRIVED, 2)]
