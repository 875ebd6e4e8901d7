"""The benchmark: its parts by property."""

import json
import statistics
from dataclasses import replace
from itertools import pairwise
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.options import Options, message_sizes, parse_bytes, parse_tail
from osu_like_bench.patterns import contribution, contribution_sum, pattern
from osu_like_bench.record import Circumstances, Record, SizeResult
from osu_like_bench.statistics import compare
from tests.support import examples
from topompi.errors import BenchmarkError

# Options


@given(st.integers(1, 2**24), st.integers(0, 2**24), st.sampled_from([1, 4]))
def test_sizes_double_from_the_first_that_holds_an_element_to_the_last_that_fits(
    low: int, more: int, item: int
) -> None:
    low *= item
    high = low + more
    sizes = message_sizes(f"{low}:{high}", item)
    assert sizes[0] == low
    assert all(after == 2 * before for before, after in pairwise(sizes))
    assert sizes[-1] <= high < 2 * sizes[-1]


def test_default_sizes_are_those_of_osu() -> None:
    assert message_sizes(None, 1) == tuple(2**power for power in range(21))
    assert message_sizes(None, 4)[0] == 4
    assert message_sizes("64", 1) == (1, 2, 4, 8, 16, 32, 64)
    assert message_sizes("1K:4K", 1) == (1024, 2048, 4096)


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "8:4", "1:2:3", ":", "1.5", "1X", "٣"])
def test_malformed_sizes_are_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="-m: expecting"):
        message_sizes(text, 1)


def test_units_are_powers_of_1024() -> None:
    assert [parse_bytes(text, "-M") for text in ("7", "2K", "3m", "1GiB")] == [7, 2048, 3 << 20, 1 << 30]


def test_large_messages_get_a_tenth_of_the_iterations_unless_told() -> None:
    options = Options("bcast")
    assert (options.repetitions(8192), options.repetitions(8193)) == ((1000, 100), (100, 10))
    assert replace(options, iterations=7, warmup=0).repetitions(1 << 20) == (7, 0)


def test_roots_are_one_rank_or_all_in_turn() -> None:
    assert Options("bcast").roots(True, 3) == (0,)
    assert Options("bcast", root="2").roots(True, 3) == (2,)
    assert Options("bcast", root="rotate").roots(True, 3) == (0, 1, 2)
    for root, rooted in (("3", True), ("-1", True), ("x", True), ("0", False)):
        with pytest.raises(BenchmarkError, match="--root"):
            Options("bcast", root=root).roots(rooted, 3)


# Patterns

ranks = st.integers(0, 255)


@given(ranks, ranks, ranks, st.integers(1, 64))
def test_blocks_of_different_ranks_differ_everywhere(first: int, second: int, other: int, items: int) -> None:
    if first != second:
        assert (pattern(first, other, items) != pattern(second, other, items)).all()
        assert (pattern(other, first, items) != pattern(other, second, items)).all()


@given(ranks, ranks, st.integers(1, 63))
def test_a_shifted_block_differs(source: int, destination: int, shift: int) -> None:
    block = pattern(source, destination, 64)[0]
    assert (np.roll(block, shift) != block).any()


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_blocks_of_many_ranks_differ_somewhere(first: int, second: int) -> None:
    if first != second:
        assert (pattern(first, 0, 16) != pattern(second, 0, 16)).any()


@examples(30)
@given(st.integers(2, 300), st.integers(1, 50), st.data())
def test_a_lost_or_doubled_contribution_shows_in_every_sum(size: int, items: int, data: st.DataObject) -> None:
    parts = np.stack([contribution(rank, size, items) for rank in range(size)])
    total = contribution_sum(size, items)
    assert (total == parts.astype(np.int64).sum(axis=0)).all(), "float32 sums are exact"
    lost, doubled = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True))
    assert (total - parts[lost] != total).all()
    assert (total - parts[lost] + parts[doubled] != total).all()


# Statistics


def noise(seed: int, size: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0, 0.1, (2, size)) * 1e-6


@given(st.integers(0, 1000), st.floats(1.3, 4))
@examples(20)
def test_a_clear_difference_is_named_and_turning_the_sides_turns_the_verdict(seed: int, factor: float) -> None:
    first, second = noise(seed)
    second *= factor
    there, back = compare(first, second), compare(second, first)
    assert there.ratio == statistics.median(second) / statistics.median(first)
    assert there.low < there.ratio < there.high
    assert there.verdict == f"{there.ratio:.2f}x faster"
    assert back.verdict == f"{1 / back.ratio:.2f}x slower"


def test_equal_sides_are_seldom_called_different() -> None:
    verdicts = [compare(*noise(seed)).verdict for seed in range(40)]
    assert verdicts.count("not significant") >= 34


def test_few_pairs_or_a_small_effect_prove_nothing() -> None:
    first = np.ones(200)
    assert compare(first, 1.01 * first).verdict == "not significant"
    assert compare(first, 1.03 * first).verdict == "1.03x faster"
    assert compare(first[:19], 2 * first[:19]).verdict == "too few pairs"
    assert compare(first[:1], 2 * first[:1]).ratio == 2


def test_an_interval_is_the_same_each_time_and_wide_ones_are_unstable() -> None:
    first, second = noise(1)
    assert compare(first, second) == compare(first, second)
    assert not compare(first, second).unstable
    wild = np.random.default_rng(2).lognormal(0, 2, (2, 50))
    assert compare(*wild).unstable


def test_unpaired_times_are_refused() -> None:
    for first, second in ((np.ones(3), np.ones(4)), (np.ones(0), np.ones(0))):
        with pytest.raises(BenchmarkError, match="expecting pairs of times"):
            compare(first, second)


# Record

texts = st.text(max_size=8)
times = st.floats(0, 10)
results = st.builds(
    SizeResult,
    size=st.integers(0, 2**30),
    side=texts,
    average=times,
    minimum=times,
    maximum=times,
    valid=st.sampled_from([True, False, None]),
    samples=st.lists(times, max_size=4).map(tuple),
)
names = st.lists(texts, max_size=3).map(tuple)


def wholes(kind: type) -> dict[str, st.SearchStrategy[int]]:
    """Whole numbers that a record may hold, for each field of that kind."""
    return {name: st.integers(1 - 2**63, 2**63 - 1) for name, hint in get_type_hints(kind).items() if hint is int}


facts = st.builds(
    Circumstances,
    **wholes(Circumstances),
    versions=st.dictionaries(texts, texts, max_size=3),
    nodes=names,
    hosts=names,
    affinity=names,
    load=st.lists(times, max_size=3).map(tuple),
)
options = st.builds(Options, **wholes(Options), sides=names, root=st.none() | texts)
records = st.builds(Record, options, facts, st.lists(results, max_size=3).map(tuple))


@examples(50)
@given(records)
def test_a_record_comes_back_from_json_as_it_was(record: Record) -> None:
    assert Record.from_json(record.to_json()) == record


@examples(10)
@given(records)
def test_what_is_no_record_is_refused(record: Record) -> None:
    whole = json.loads(record.to_json())
    no_facts = {name: value for name, value in whole.items() if name != "facts"}
    odd = {**whole, "options": {**whole["options"], "colour": "red"}}
    for data in (
        {**whole, "version": 2},
        {**whole, "format": "x"},
        no_facts,
        odd,
        [],
        {**whole, "results": 1},
    ):
        with pytest.raises(BenchmarkError, match="record: "):
            Record.from_json(json.dumps(data))
    with pytest.raises(BenchmarkError, match="expecting JSON"):
        Record.from_json(record.to_json()[:-3])


def test_percentiles_are_ascending_and_malformed_ones_refused() -> None:
    assert parse_tail("P99,50,99.9,100") == (50, 99, 99.9, 100)
    assert parse_tail(None) == ()
    for text in ("", "x", "P", "101", "50,", "-5", "1e1"):
        with pytest.raises(BenchmarkError, match="-z: expecting percentiles"):
            parse_tail(text)
