"""The checker, against a slow oracle: it accepts right schedules, and refuses wrong ones and names the place."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.handwritten import IN_RANK_ORDER, WRITERS, make
from tests.support import examples
from tests.symbolic import Refused, interleave, run
from topompi.schedules import Schedule
from topompi.schedules.proof import Proof, ScheduleError, check
from topompi.schedules.schedule import COLUMNS, COPY, INPUT, OUTPUT, REDUCE, SCRATCH


def verdict(schedule: Schedule, commutative: bool = True) -> tuple[bool, int | None]:
    """Whether the checker accepts, and the step that it blames."""
    try:
        check(schedule, commutative)
    except ScheduleError as error:
        return False, error.step
    return True, None


def oracle(schedule: Schedule, commutative: bool = True) -> tuple[bool, int | None]:
    """Whether the slow simulation accepts, and the step that it blames."""
    try:
        run(schedule, commutative)
    except Refused as refused:
        return False, refused.step
    return True, None


@st.composite
def good(draw: st.DrawFn) -> Schedule:
    """A right schedule of any writer, with zero blocks and uneven counts."""
    name = draw(st.sampled_from(sorted(WRITERS)))
    size = draw(st.integers(1, 6))
    blocks = draw(st.integers(0, 3))
    share = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    counts = st.lists(share, min_size=size, max_size=size) if name.endswith("alltoall") else share
    uneven = draw(st.none() | counts)
    return make(name, size, draw(st.integers(0, size - 1)), blocks, uneven)


@st.composite
def corrupted(draw: st.DrawFn) -> Schedule:
    """A right schedule with up to three rows changed, dropped, doubled or moved, or declared independent."""
    schedule = draw(good())
    table = np.stack(list(schedule.columns().values()), axis=1).astype(np.int64)
    for _ in range(draw(st.integers(0, 3))):
        if not len(table):
            break
        row = draw(st.integers(0, len(table) - 1))
        what = draw(st.sampled_from(("drop", "double", "step", *COLUMNS)))
        if what == "drop":
            table = np.delete(table, row, axis=0)
        elif what == "double":
            table = np.concatenate([table, table[row : row + 1]])
        else:
            column = COLUMNS.index(what)
            change = draw(st.sampled_from((-1, 1, 2)))
            table[row, column] = max(table[row, column] + change, 0 if what == "step" else -1)
    columns = {
        name: getattr(schedule, name)
        for name in ("collective", "size", "algorithm", "root", "blocks", "counts", "window")
    }
    independent = schedule.independent ^ draw(st.sampled_from((False, False, True)))
    return Schedule.from_rows(**columns, rows=table, independent=independent)


@given(good(), st.integers(0, 2**32))
@examples(150)
def test_right_schedules_are_proved_and_run_in_any_order_of_events(schedule: Schedule, seed: int) -> None:
    assert check(schedule).rows == schedule.num_rows
    run(schedule)
    interleave(schedule, seed)


@given(corrupted(), st.booleans())
@examples(1500)
def test_verdict_and_first_step_agree_with_the_simulation(schedule: Schedule, commutative: bool) -> None:
    accepted, step = verdict(schedule, commutative)
    expected, first = oracle(schedule, commutative)
    assert accepted == expected
    if first is not None:
        assert step == first


@given(corrupted(), st.integers(0, 2**32))
@examples(300)
def test_what_is_proved_runs_to_the_right_end_without_a_barrier(schedule: Schedule, seed: int) -> None:
    if verdict(schedule)[0]:
        interleave(schedule, seed)


@pytest.mark.parametrize("name", [name for name in sorted(WRITERS) if "reduce" in name])
def test_rank_order_is_kept_by_those_that_keep_it_and_by_no_other(name: str) -> None:
    for size in range(3, 9):
        assert verdict(make(name, size, size - 1), commutative=False)[0] == (name in IN_RANK_ORDER)


@pytest.mark.parametrize("collective", ["bcast", "gather", "reduce_scatter", "allreduce", "alltoall"])
def test_a_schedule_without_rows_is_right_only_where_nothing_is_wanted(collective: str) -> None:
    rooted = {"root": 0} if collective in ("bcast", "gather") else {}
    check(Schedule.from_rows(collective, 3, "none", [], blocks=0, **rooted))
    with pytest.raises(ScheduleError, match="output block 0 of rank 0 is never written"):
        check(Schedule.from_rows(collective, 3, "none", [], blocks=1, **rooted))


def test_the_proof_counts_what_was_proved() -> None:
    assert check(make("shift_alltoall", 4, blocks=3)) == Proof(rows=16, steps=4, messages=12, moves=48)


# Seeded defects, one of a kind: a right schedule is changed in one place, the message must say exactly that.


def rows_of(schedule: Schedule) -> np.ndarray:
    return np.stack(list(schedule.columns().values()), axis=1).astype(np.int64)


def refused(schedule: Schedule, rows: object, commutative: bool = True, **changes: object) -> str:
    """The message for a right schedule whose rows are replaced; the right one is proved first."""
    check(schedule, commutative)
    names = ("collective", "size", "algorithm", "root", "blocks", "counts", "independent", "window")
    kept = {name: getattr(schedule, name) for name in names} | changes
    with pytest.raises(ScheduleError) as raised:
        check(Schedule.from_rows(rows=rows, **kept), commutative)
    return str(raised.value)


def changed(schedule: Schedule, row: int, **values: int) -> np.ndarray:
    """The rows, with some columns of one row changed."""
    table = rows_of(schedule)
    for name, value in values.items():
        table[row, COLUMNS.index(name)] = value
    return table


def chain() -> Schedule:
    """0 -> 1 -> 2 -> 3, one block; row r is the transfer to rank r."""
    return make("chain_bcast", 4)


MALFORMED = ("source", "destination", "source_buffer", "destination_buffer", "count", "operation", "source_block")
BAD = dict(zip(MALFORMED, (9, 9, 5, INPUT, -1, REDUCE, 7), strict=True))


@pytest.mark.parametrize("first", MALFORMED)
@pytest.mark.parametrize("second", MALFORMED)
def test_of_two_malformed_rows_the_first_is_named_whatever_is_wrong(first: str, second: str) -> None:
    one = changed(chain(), 1, **{first: BAD[first]})
    two = one.copy()
    two[2, COLUMNS.index(second)] = BAD[second]
    assert refused(chain(), two) == refused(chain(), one)


def test_a_lost_block_is_named() -> None:
    schedule = make("linear_gather", 4, blocks=2)
    message = refused(schedule, np.delete(rows_of(schedule), 2, axis=0))
    assert message == "end: output block 4 of rank 0 is never written, expecting input block 0 of rank 2"


def test_a_contribution_reduced_twice_is_named() -> None:
    schedule = make("linear_reduce", 4)
    rows = [*rows_of(schedule).tolist(), [4, 2, 0, INPUT, 0, OUTPUT, 0, 1, REDUCE]]
    message = refused(schedule, rows)
    assert message == "step 4, rank 2 -> rank 0: input block 0 of rank 2 is reduced twice into output block 0 of rank 0"


def test_a_block_sent_before_it_arrived_is_named() -> None:
    message = refused(chain(), changed(chain(), 2, step=1, source=3, destination=2))
    assert message == (
        "step 1, rank 3 -> rank 2: output block 0 of rank 3 is read before it arrives, in step 3 from rank 2"
    )


def test_a_self_wait_is_named() -> None:
    message = refused(chain(), changed(chain(), 2, step=1))
    assert message == (
        "step 1, rank 1 -> rank 2: output block 0 of rank 1 is read in the very step in which the transfer from rank 0 "
        "writes it: the transfer waits for itself"
    )


def test_two_writers_of_one_place_are_named() -> None:
    schedule = make("linear_gather", 4)
    message = refused(schedule, changed(schedule, 3, destination_block=2))
    assert message == (
        "step 0, rank 3 -> rank 0: output block 2 of rank 0 is written by the transfer from rank 2 in the same step"
    )


def test_a_copy_and_a_reduction_into_one_place_are_named() -> None:
    schedule = make("fan_reduce", 4)
    message = refused(schedule, changed(schedule, 2, operation=COPY))
    assert message == (
        "step 1, rank 2 -> rank 0: output block 0 of rank 0 is written by the transfer from rank 1 in the same step"
    )


def test_two_reductions_into_one_place_are_refused_where_order_matters() -> None:
    schedule = make("linear_reduce", 4)
    message = refused(schedule, changed(schedule, 2, step=1), commutative=False)
    assert message == (
        "step 1, rank 2 -> rank 0: output block 0 of rank 0 is written by the transfer from rank 1 in the same step, "
        "and the order of two reductions in one step is undefined"
    )


def test_a_place_read_while_it_is_written_is_named() -> None:
    schedule = make("ring_allgather", 4)
    rows = [*rows_of(schedule).tolist(), [2, 0, 1, INPUT, 0, OUTPUT, 0, 1, COPY]]
    message = refused(schedule, rows)
    assert message == (
        "step 2, rank 1 -> rank 2: output block 0 of rank 1 is read while the transfer from rank 0 writes it in the "
        "same step"
    )


def test_a_wrong_order_of_reduction_is_named() -> None:
    schedule = make("linear_reduce", 4)
    rows = rows_of(schedule)
    rows[[1, 2], 0] = rows[[2, 1], 0]
    message = refused(schedule, rows, commutative=False)
    assert message == (
        "step 1, rank 2 -> rank 0: output block 0 of rank 0 holds input block 0 of rank 0, and input block 0 of rank 2 "
        "is not next in rank order"
    )


def test_a_missing_contribution_is_named() -> None:
    schedule = make("binomial_reduce", 4, root=2)
    message = refused(schedule, changed(schedule, 4, source_buffer=INPUT, destination_block=1))
    assert message == ("step 1, rank 1 -> rank 0: reduces into scratch block 1 of rank 0, which holds nothing yet")
    message = refused(schedule, np.delete(rows_of(schedule), 5, axis=0))
    assert message == (
        "end: output block 0 of rank 2: expecting input block 0 of all ranks, got input block 0 of ranks 0-2 in step 3 "
        "from rank 0"
    )


def test_contributions_of_different_blocks_are_named() -> None:
    schedule = make("linear_allreduce", 3, blocks=2)
    message = refused(schedule, changed(schedule, 4, source_block=1, count=1))
    assert message == (
        "step 1, rank 1: output block 0 of rank 1 holds input block 0 of rank 0, and input block 1 of rank 1 "
        "is another block"
    )


def test_blocks_may_not_be_mixed_where_order_matters() -> None:
    schedule = make("linear_allreduce", 2, blocks=2)
    rows = [*rows_of(schedule)[:3].tolist(), [1, 1, 1, INPUT, 1, OUTPUT, 0, 1, REDUCE]]
    assert refused(schedule, rows, commutative=False).endswith("and input block 1 of rank 1 is another block")


def test_contributions_missing_in_the_midst_are_named_without_blame_for_their_order() -> None:
    schedule = make("fan_reduce", 5, root=2)
    message = refused(schedule, np.delete(rows_of(schedule), 2, axis=0))
    assert message == (
        "end: output block 0 of rank 2: expecting input block 0 of all ranks, got input block 0 of ranks 0, 2-4 in "
        "step 1 from rank 4"
    )


def test_a_result_that_reaches_one_rank_only_is_refused() -> None:
    rows = [[0, 0, 1, INPUT, 0, OUTPUT, 0, 1, COPY], [1, 1, 1, INPUT, 0, OUTPUT, 0, 1, REDUCE]]
    with pytest.raises(
        ScheduleError, match=r"^end: output block 0 of rank 0 is never written, expecting input block 0 of"
    ):
        check(Schedule.from_rows("allreduce", 2, "half", rows))


def test_a_contribution_doubled_until_64_bits_run_over_is_not_mistaken_for_none() -> None:
    rows = [[0, 0, 0, INPUT, 0, OUTPUT, 0, 1, COPY]]
    for k in range(64):
        rows.append([2 * k + 1, 0, 0, OUTPUT, 0, SCRATCH, 0, 1, COPY])
        rows.append([2 * k + 2, 0, 0, SCRATCH, 0, OUTPUT, 0, 1, REDUCE])
    rows.append([129, 0, 0, INPUT, 0, OUTPUT, 0, 1, REDUCE])
    message = refused(make("linear_allreduce", 1), rows)
    assert message == "step 2, rank 0: input block 0 of rank 0 is reduced twice into output block 0 of rank 0"


@pytest.mark.parametrize("own_first", [True, False])
def test_a_move_may_overlap_itself_but_with_no_other(own_first: bool) -> None:
    rows = [[0, 0, 0, INPUT, 0, buffer, 0, 3, COPY] for buffer in (OUTPUT, SCRATCH)]
    slide = [[1, 0, 0, SCRATCH, 0, SCRATCH, 1, 2, REDUCE]]
    schedule = Schedule.from_rows("reduce", 1, "slide", rows + slide, root=0, blocks=3)
    other = [[1, 0, 0, INPUT, 1, SCRATCH, 1, 1, REDUCE]]
    message = refused(schedule, rows + (slide + other if own_first else other + slide))
    assert (
        message
        == "step 1, rank 0: scratch block 1 of rank 0 is read while rank 0's own move writes it in the same step"
    )


@pytest.mark.parametrize("name", ["source", "destination"])
@pytest.mark.parametrize("rank", [-1, 4])
def test_a_rank_out_of_range_is_named(name: str, rank: int) -> None:
    message = refused(chain(), changed(chain(), 1, **{name: rank}))
    assert message.startswith("step 1, rank ")
    assert message.endswith(f": expecting {name} in range(0, 4), got {rank}")


def test_an_unknown_buffer_operation_or_count_is_named() -> None:
    begin = "step 1, rank 0 -> rank 1: expecting "
    assert refused(chain(), changed(chain(), 1, source_buffer=3)) == f"{begin}source buffer in range(0, 3), got 3"
    assert refused(chain(), changed(chain(), 1, operation=2)) == f"{begin}operation in range(0, 2), got 2"
    assert refused(chain(), changed(chain(), 1, count=-1)) == f"{begin}count at least 0, got -1"


def test_a_block_out_of_range_is_named() -> None:
    schedule = make("linear_gather", 3, blocks=2)
    message = refused(schedule, changed(schedule, 1, source_block=1))
    assert message == "step 0, rank 1 -> rank 0: reads blocks 1:3 of the input of rank 1, which has 2"
    message = refused(chain(), changed(chain(), 2, source_buffer=INPUT))
    assert message.endswith("of the input of rank 1, which has 0; a rank that forwards reads its output, buffer 1")
    message = refused(schedule, changed(schedule, 2, destination=1))
    assert message == "step 0, rank 2 -> rank 1: writes blocks 4:6 of the output of rank 1, which has 0"
    message = refused(schedule, changed(schedule, 2, destination_buffer=SCRATCH, destination_block=-1))
    assert message == "step 0, rank 2 -> rank 0: writes blocks -1:1 of the scratch of rank 0"


def test_a_write_to_the_input_is_named() -> None:
    message = refused(chain(), changed(chain(), 2, destination_buffer=INPUT))
    assert message == "step 2, rank 1 -> rank 2: writes input block 0 of rank 2, and the input is never written"


def test_a_reduction_where_nothing_is_reduced_is_named() -> None:
    message = refused(chain(), changed(chain(), 2, operation=REDUCE))
    assert message == "step 2, rank 1 -> rank 2: reduces, and bcast only copies"


def test_a_read_of_what_nothing_writes_is_named() -> None:
    message = refused(chain(), changed(chain(), 2, source_buffer=SCRATCH))
    assert message == "step 2, rank 1 -> rank 2: scratch block 0 of rank 1 is read, and nothing ever writes it"


def test_a_wrong_place_at_the_end_is_named() -> None:
    schedule = make("shift_alltoall", 4)
    rows = rows_of(schedule)
    swap = [4, 8]  # both to rank 1 and rank 2 from rank 0, in steps 1 and 2
    assert (rows[swap, 1] == 0).all()
    rows[swap, 4] = rows[swap[::-1], 4]
    message = refused(schedule, rows)
    assert message == (
        "end: output block 0 of rank 1: expecting input block 1 of rank 0, "
        "got input block 2 of rank 0 in step 1 from rank 0"
    )


def test_a_wrong_result_at_the_root_is_named() -> None:
    message = refused(chain(), np.delete(rows_of(chain()), 0, axis=0))
    assert message == "step 1, rank 0 -> rank 1: output block 0 of rank 0 is read, and nothing ever writes it"
    schedule = make("linear_bcast", 4, root=2)
    message = refused(schedule, np.delete(rows_of(schedule), 2, axis=0))
    assert message == "end: output block 0 of rank 2 is never written, expecting input block 0 of rank 2"


def test_dependent_steps_declared_independent_are_named() -> None:
    message = refused(chain(), rows_of(chain()), independent=True)
    assert message == (
        "step 1, rank 0 -> rank 1: output block 0 of rank 0 is read, which step 0 writes, and the steps are declared "
        "independent"
    )
    schedule = make("shift_alltoall", 3)
    rows = [*rows_of(schedule).tolist(), [2, 1, 2, INPUT, 2, OUTPUT, 1, 1, COPY]]
    message = refused(schedule, rows)
    assert message == (
        "step 2, rank 1 -> rank 2: output block 1 of rank 2 is also written in step 1, and the steps are declared "
        "independent"
    )


def test_the_first_of_several_violations_is_named() -> None:
    """Malformed rows do not hide what earlier steps did wrong."""
    rows = changed(chain(), 3, destination=9)
    rows[2, 0] = 1
    assert "step 1, rank 1 -> rank 2" in refused(chain(), rows)
    rows = changed(chain(), 3, destination=9)
    rows[1, 4] = 1
    assert refused(chain(), rows) == "step 1, rank 0 -> rank 1: reads blocks 1:2 of the output of rank 0, which has 1"


def test_a_scratch_beyond_any_reason_is_refused_in_words() -> None:
    rows = [[2**30, 0, 0, INPUT, 0, OUTPUT, 0, 1, COPY]]
    rows += [[2**31 - 2, r, r, OUTPUT, 0, SCRATCH, 2**31 - 2, 1, COPY] for r in range(2)]
    schedule = Schedule.from_rows("bcast", 2, "far", rows, root=0)
    with pytest.raises(ScheduleError, match="the scratch of rank 0 reaches block 2147483647: too far to check"):
        check(schedule)


def test_a_million_transfers_are_proved_in_less_than_two_gibibytes() -> None:
    size = 1024
    step, source = np.divmod(np.arange(size**2, dtype=np.int32), np.int32(size))
    destination = (source + step) % size
    zero, one = np.zeros_like(step), np.ones_like(step)
    columns = (step, source, destination, zero, destination, one, source, one, zero)
    schedule = Schedule("alltoall", size, "shift", *columns, independent=True)
    tracemalloc.start()
    try:
        assert check(schedule).messages == size * (size - 1)
        assert tracemalloc.get_traced_memory()[1] < 2**31
    finally:
        tracemalloc.stop()
