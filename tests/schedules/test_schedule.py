"""The schedule as a value: refused rows, immutability, owners of blocks; and JSON in both directions."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.handwritten import WRITERS, make
from topompi.schedules import Schedule
from topompi.schedules.exports.jsonio import from_json, to_json
from topompi.schedules.schedule import COLLECTIVES, COLUMNS, ROOTED, UNCOUNTED

ROW = [0, 0, 1, 0, 0, 1, 0, 1, 0]


def bcast(rows: object = (ROW,), **changes: object) -> Schedule:
    return Schedule.from_rows(**{"collective": "bcast", "size": 2, "algorithm": "a", "root": 0, "rows": rows} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"collective": "fly"}, f"expecting one of {', '.join(COLLECTIVES)}, got 'fly'"),
        ({"size": 0}, "expecting at least one rank, got 0"),
        ({"root": None}, "expecting a root for bcast"),
        ({"collective": "alltoall"}, "expecting no root for alltoall"),
        ({"root": 2}, "expecting root in range(2), got 2"),
        ({"root": -1}, "expecting root in range(2), got -1"),
        ({"blocks": -1}, "expecting at least 0 blocks, got -1"),
        ({"window": -1}, "expecting at least 0 window, got -1"),
        ({"counts": np.array([1, 1])}, "expecting no counts for bcast"),
        ({"collective": "gather", "counts": np.ones(3)}, "expecting counts of shape (2,), got (3,)"),
        (
            {"collective": "alltoall", "root": None, "counts": np.ones(4)},
            "expecting counts of shape (2, 2), got (4,)",
        ),
        ({"collective": "gather", "counts": np.array([1, -2])}, "expecting counts of at least 0, got -2"),
        ({"rows": [[-1, *ROW[1:]]]}, "expecting steps from 0, got -1"),
        ({"rows": [[0, 0, 2**31, *ROW[3:]]]}, "expecting 32-bit integers in destination, got 2147483648"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_words(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bcast(**changes)


def test_columns_of_unequal_length_or_falling_steps_are_refused() -> None:
    columns = bcast([ROW, ROW]).columns()
    with pytest.raises(ValueError, match="expecting columns of one length"):
        Schedule("bcast", 2, "a", **columns | {"count": np.ones(3, dtype=np.int32)}, root=0)
    with pytest.raises(ValueError, match="expecting transfers in the order of their steps"):
        Schedule("bcast", 2, "a", **columns | {"step": np.array([1, 0], dtype=np.int32)}, root=0)


@pytest.mark.parametrize("name", ["root", "step", "source", "counts"])
def test_no_field_can_be_set(name: str) -> None:
    schedule = make("linear_gather", 3, counts=[1, 0, 2])
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(schedule, name, None)


def test_arrays_cannot_be_written_and_are_not_the_callers() -> None:
    counts, columns = np.array([1, 2]), {name: np.zeros(1, dtype=np.int32) for name in COLUMNS}
    schedule = Schedule("gather", 2, "a", **columns, root=0, counts=counts)
    for name, mine in {**columns, "counts": counts}.items():
        with pytest.raises(ValueError, match="read-only"):
            getattr(schedule, name)[0] = 1
        mine[0] = 7
        assert getattr(schedule, name)[0] != 7


@given(st.permutations(range(6)))
def test_rows_are_ordered_by_step_and_keep_their_order_within(order: list[int]) -> None:
    rows = [[k // 3, 0, 1, 0, 0, 1, order.index(k), 1, 0] for k in range(6)]
    schedule = bcast([rows[k] for k in order])
    assert schedule.step.tolist() == [0, 0, 0, 1, 1, 1]
    blocks = schedule.destination_block
    assert (np.diff(blocks[:3]) > 0).all()
    assert (np.diff(blocks[3:]) > 0).all()


def test_steps_messages_and_the_rows_of_a_rank_are_counted() -> None:
    schedule = bcast([[0, 0, 0, *ROW[3:]], [2, *ROW[1:]], [2, 1, 1, 1, 0, 2, 0, 1, 0]])
    assert (schedule.num_rows, schedule.num_steps) == (3, 3)
    assert schedule.messages.tolist() == [1]
    assert schedule.of_rank(0).tolist() == [0, 1]
    assert schedule.of_rank(1).tolist() == [1, 2]
    assert (bcast([]).num_rows, bcast([]).num_steps) == (0, 0)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_share_is_the_counts_or_the_blocks_of_every_rank_or_pair(collective: str) -> None:
    root = 0 if collective in ROOTED else None
    shape = (3, 3) if collective == "alltoall" else (3,)
    schedule = Schedule.from_rows(collective, 3, "a", [], root=root, blocks=4)
    assert (schedule.share() == np.full(shape, 4)).all()
    assert schedule.share().shape == shape
    if collective not in UNCOUNTED:
        counts = np.arange(np.prod(shape)).reshape(shape)
        schedule = Schedule.from_rows(collective, 3, "a", [], root=root, blocks=4, counts=counts)
        assert (schedule.share() == counts).all()


def same(one: Schedule, other: Schedule) -> bool:
    names = ("collective", "size", "algorithm", "root", "blocks", "independent", "window")
    columns = zip(one.columns().values(), other.columns().values(), strict=True)
    return (
        all(getattr(one, name) == getattr(other, name) for name in names)
        and (one.share() == other.share()).all()
        and (one.counts is None) == (other.counts is None)
        and all(mine.dtype == theirs.dtype and (mine == theirs).all() for mine, theirs in columns)
    )


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_json_out_and_in_is_the_same_schedule_and_the_same_text(name: str) -> None:
    share = [[2, 0, 1], [1, 1, 1], [0, 3, 0]] if name.endswith("alltoall") else [2, 0, 1]
    for schedule in (make(name, 3, 1, counts=share), make(name, 8, 2, blocks=3), make(name, 1, 0, blocks=0)):
        text = to_json(schedule)
        assert same(from_json(text), schedule)
        assert to_json(from_json(text)) == text
        json.loads(text, parse_constant=pytest.fail)


INTEGERS = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)


@given(st.lists(st.tuples(INTEGERS, st.integers(-3, 3) | INTEGERS, st.integers(1, 6))), st.lists(INTEGERS))
def test_any_column_comes_back_whether_regular_or_not(runs: list[tuple[int, int, int]], plain: list[int]) -> None:
    values = [start + stride * k for start, stride, length in runs for k in range(length)] + plain
    values = [(value + 2**31) % 2**32 - 2**31 for value in values]
    rows = [[0, value, 1, 0, 0, 1, 0, 1, 0] for value in values]
    assert from_json(to_json(bcast(rows))).source.tolist() == values


def test_regular_columns_are_short() -> None:
    """Runs grow with the steps, not with the rows."""
    small, large = (len(to_json(make("shift_alltoall", size))) for size in (16, 64))
    assert large < 6 * small


def edited(**changes: object) -> str:
    """The text of a small schedule with some of its fields replaced; an ellipsis takes one out."""
    document = json.loads(to_json(make("linear_gather", 2, counts=[1, 2]))) | changes
    return json.dumps({name: value for name, value in document.items() if value is not ...}, default=repr)


def with_column(value: object, name: str = "source") -> str:
    document = json.loads(edited())
    document["columns"][name] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a schedule: expecting an object, got []"),
        (edited(schedule=2), "schedule: expecting version 1, got 2"),
        (edited(schedule=True), "schedule: expecting an integer, got true"),
        (edited(size=...), "a schedule: expecting a field size, got none"),
        (
            edited(colour=1),
            "a schedule: expecting fields schedule, collective, size, algorithm, root, blocks, counts, independent, "
            'window, rows, columns, got "colour"',
        ),
        (edited(size=2.0), "size: expecting an integer, got 2.0"),
        (edited(size=True), "size: expecting an integer, got true"),
        (edited(root="0"), 'root: expecting an integer or null, got "0"'),
        (edited(independent=0), "independent: expecting true or false, got 0"),
        (edited(algorithm=None), "algorithm: expecting a string, got null"),
        (edited(root=None), "expecting a root for gather"),
        (edited(counts=[1, 2.5]), "counts[1]: expecting an integer of 32 bits, got 2.5"),
        (edited(counts=[[1, 2], [3]]), "counts[1]: expecting 2 integers, got [3]"),
        (edited(counts=[[1, 2], 3]), "counts[1]: expecting a list of integers, got 3"),
        (edited(counts=[1, 2, 3]), "expecting counts of shape (2,), got (3,)"),
        (edited(rows=-1), "rows: expecting 0 to 2147483647, got -1"),
        (edited(rows=3), "columns.step: expecting 3 rows, got 2"),
        (edited(columns=[]), "columns: expecting an object, got []"),
        (edited(columns={}), "columns: expecting a field step, got none"),
        (with_column([0, True]), "columns.source[1]: expecting an integer of 32 bits, got true"),
        (with_column([0, 2**31]), "columns.source[1]: expecting an integer of 32 bits, got 2147483648"),
        (with_column("01"), 'columns.source: expecting a list of integers, got "01"'),
        (with_column([0]), "columns.source: expecting 2 rows, got 1"),
        (with_column({"start": [0], "stride": [1]}), "columns.source: expecting a field length, got none"),
        (
            with_column({"start": [0], "stride": [1], "length": [0]}),
            "columns.source: expecting start, stride and length of each run, of 1 or more, got "
            '{"start": [0], "stride": [1], "length": [0]}',
        ),
        (with_column({"start": [0], "stride": [1], "length": [9]}), "columns.source: expecting 2 rows, got 9"),
        (
            with_column({"start": [2**31 - 1], "stride": [1], "length": [2]}),
            "expecting 32-bit integers in source, got 2147483648",
        ),
        (
            with_column([], "tint"),
            "columns: expecting fields step, source, destination, source_buffer, source_block, destination_buffer, "
            'destination_block, count, operation, got "tint"',
        ),
        ('{"size":1,"size":2}', 'schedule: expecting each field once, got "size" twice'),
        ('{"size":NaN}', "schedule: expecting JSON, got NaN"),
        ("[" * 100000, "schedule: expecting JSON with brackets nested within reason, got more"),
    ],
)
def test_a_text_that_is_no_schedule_is_refused_by_the_name_of_the_field(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_json(text)


def test_a_field_that_a_file_has_twice_is_refused_by_the_name_of_the_file() -> None:
    with pytest.raises(ValueError, match=r"^one\.json: expecting each field once, got \"size\" twice$"):
        from_json('{"size":1,"size":2}', "one.json")


def test_text_that_is_no_json_is_refused_by_line() -> None:
    with pytest.raises(ValueError, match=r"schedule:1: expecting JSON"):
        from_json("{")
