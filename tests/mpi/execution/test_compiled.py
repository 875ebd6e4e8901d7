"""The loop in C that runs plans: plans that it refuses or leaves to Python, and its state after an error."""

from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

from topompi.mpi.execution import compiled as module
from topompi.mpi.execution.areas import Span
from topompi.mpi.execution.compiled import COPY, REDUCE, SEND, START_RECEIVE, START_SEND, WAIT, compiled
from topompi.mpi.execution.plan import Message, Moves, Plan, Reduction, Step
from topompi.schedules.schedule import INPUT, OUTPUT, SCRATCH

pytestmark = [
    pytest.mark.skipif(not module.COMPILED, reason="topompi was installed without a C compiler"),
]
HERE = np.array([0])


def program(instructions, revoked=(), op=MPI.OP_NULL):
    table = np.array(instructions, dtype=np.int64).reshape(-1, 6)
    comm, operation = module._handle(MPI.COMM_SELF), module._handle(op)
    return module.Program(module._functions(), module._sizes(), revoked, MPI.Exception, table, comm, 0, operation)


def at(array):
    return array.__array_interface__["data"][0]


def message(kind, array, count=None):
    return kind, at(array), 0, array.nbytes if count is None else count, module._handle(MPI.BYTE), 0


def copy(source, target):
    return COPY, at(source), at(target), target.nbytes, 0, 0


def test_the_functions_of_this_library_are_found():
    assert module._functions() is not None


def test_messages_copies_and_reductions_do_what_their_names_say():
    source, target, further = np.arange(4.0), np.zeros(4), np.ones(4)
    double = module._handle(MPI.DOUBLE)
    reduce = REDUCE, at(target), at(further), 4, double, 0
    program([message(START_RECEIVE, target), message(SEND, source), (WAIT, 0, 0, 1, 0, 0), reduce], op=MPI.SUM).run()
    assert target.tolist() == source.tolist()
    assert further.tolist() == [1, 2, 3, 4]


def test_a_moved_program_uses_other_memory():
    """Places may overlap those of before: each address moves once."""
    memory = np.arange(32, dtype=np.uint8)
    one, two, scratch = memory[:8], memory[8:16], np.full(8, 99, np.uint8)
    moving = program([copy(one, scratch), copy(scratch, two)])
    moving.run()
    assert memory[8:16].tolist() == scratch.tolist() == list(range(8))
    memory[:] = np.arange(32)
    moving.relocate((at(one), at(two)), (8, 8), (at(two), at(memory[16:])))
    moving.run()
    assert memory[:16].tolist() == list(range(16))
    assert memory[16:24].tolist() == scratch.tolist() == list(range(8, 16))
    waits = program([message(START_RECEIVE, two), message(SEND, one), (WAIT, 0, 0, 1, 0, 0)])
    waits.relocate((0, 1), (1, 1), (5, 6))  # requests have numbers, which are no addresses
    waits.run()
    assert memory[8:16].tolist() == list(range(8))


@pytest.mark.parametrize(
    "instruction",
    [(-1, 0, 0, 0, 0, 0), (7, 0, 0, 0, 0, 0), (COPY, 0, 0, -1, 0, 0), (WAIT, 0, 0, 1, 0, 0), (SEND, 0, 0, 2**31, 0, 0)],
    ids=["kind below", "kind above", "negative", "wait for what was not posted", "more than an int"],
)
def test_wrong_instructions_are_refused(instruction):
    with pytest.raises(ValueError, match="expecting known instructions"):
        program([instruction])


@pytest.mark.parametrize("table", [np.zeros(6, np.int64), np.zeros((1, 5), np.int64), np.zeros((1, 6), np.int32), None])
def test_wrong_tables_are_refused(table):
    with pytest.raises((TypeError, ValueError), match="instructions: expecting"):
        module.Program(module._functions(), module._sizes(), (), MPI.Exception, table, 0, 0, 0)


def failing(copied):
    """A message to a rank that there is not, and a copy after it."""
    source = np.full(8, 7, np.uint8)
    instructions = [(START_SEND, at(source), 0, 8, module._handle(MPI.BYTE), 5), (WAIT, 0, 0, 1, 0, 0)]
    return [*instructions, copy(source, copied)], source


def test_after_an_error_the_rest_runs_and_the_error_is_raised():
    copied = np.zeros(8, np.uint8)
    instructions, _source = failing(copied)
    run = program(instructions).run
    for _ in range(2):  # a run leaves nothing behind for the next
        copied[:] = 0
        with pytest.raises(MPI.Exception) as raised:
            run()
        assert raised.value.Get_error_class() == MPI.ERR_RANK
        assert copied.tolist() == [7] * 8


def test_after_a_revocation_nothing_more_runs():
    copied = np.zeros(8, np.uint8)
    instructions, _source = failing(copied)
    with pytest.raises(MPI.Exception):
        program(instructions, (MPI.ERR_RANK,)).run()
    assert copied.tolist() == [0] * 8


def span(entries=4, datatype=MPI.DOUBLE, dense=True):
    return Span(MPI.buffer.frombuffer(np.zeros(entries * 8, np.uint8)), 8, datatype, 1, dense)


def plan(*steps, window=1):
    return Plan(steps, window, 4, 0, False)


MOVE = Step((Moves(INPUT, HERE, OUTPUT, HERE, HERE + 1),), (), (), ())
ORDERED = Step((), (), (), (Reduction(INPUT, 0, OUTPUT, 0, 1, False),))


def test_plans_for_data_with_gaps_are_left_to_python_where_they_copy():
    areas = {buffer: span(dense=False) for buffer in (INPUT, OUTPUT, SCRATCH)}
    op = MPI.Op.Create(lambda one, other, kind: None, commute=False)
    assert compiled(plan(MOVE), areas, MPI.COMM_SELF, None, 0) is None
    assert compiled(plan(ORDERED), areas, MPI.COMM_SELF, op, 0) is None
    assert compiled(plan(ORDERED), areas, MPI.COMM_SELF, MPI.SUM, 0) is not None
    op.Free()


def test_messages_of_more_entries_than_an_int_are_left_to_python():
    memory = MPI.buffer.fromaddress(8, 1 << 40)
    areas = {INPUT: Span(memory, 1, MPI.BYTE, 1, True)}
    for length, runs in ((2**31 - 1, True), (2**31, False)):
        step = Step((), (), (Message(0, INPUT, 0, length),), ())
        assert (compiled(plan(step), areas, MPI.COMM_SELF, None, 0) is not None) == runs


def test_a_plan_with_a_window_keeps_so_many_steps_in_flight(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "Program", lambda *given: seen.append(given[4]) or SimpleNamespace(run=None))
    steps = [Step((), (Message(0, OUTPUT, one, 1),), (Message(0, INPUT, one, 1),), ()) for one in range(4)]
    compiled(plan(*steps, window=2), {INPUT: span(), OUTPUT: span()}, MPI.COMM_SELF, None, 0)
    flying, most = 0, 0
    for kind, _, _, count, *_ in seen[0].tolist():
        flying += -count if kind == WAIT else 1
        most = max(most, flying)
    assert (flying, most) == (0, 4)  # two messages a step
