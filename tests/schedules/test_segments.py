"""Algorithms with messages cut into segments: names, sizes, and the worthwhile ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mpi.execution.eligibility import why_not
from topompi.mpi.execution.specs import CALLS, Needs
from topompi.mpi.selection.rules import Rules, RulesError
from topompi.schedules import ALGORITHMS
from topompi.schedules.segments import Pieces, can_be_cut, cut, cuttable, divides, pieces_of, segments_of, variants
from topompi.schedules.table import MOST_PARTS


@pytest.mark.parametrize(
    ("algorithm", "found"),
    [("ring", ("ring", None)), ("ring/100", ("ring", 100)), ("ring/32K", ("ring", 32768)), ("a/2M", ("a", 2 << 20))],
)
def test_a_name_may_say_how_long_messages_are(algorithm, found):
    assert cut(algorithm) == found


@pytest.mark.parametrize(
    "algorithm", ["ring/", "ring/K", "ring/0", "ring/0K", "ring/-1", "ring/1.5K", "ring/1X", "a/1/2"]
)
def test_what_is_no_size_cannot_run(algorithm):
    with pytest.raises(ValueError, match="expecting bytes as 32K"):
        cut(algorithm)
    assert why_not("Allgather", algorithm)


def test_a_file_or_a_function_is_never_cut():
    for name in ("made/shift.json", "mine:exchange", "folder/mine:exchange"):
        assert cut(name) == (name, None)


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
def test_what_can_be_cut_has_pieces_and_nothing_else_has(collective):
    for name in ALGORITHMS[collective]:
        assert pieces_of(collective, name, 1 << 16) == Pieces(name)
        if can_be_cut(collective, f"{name}/8K"):
            wanted = Pieces(name, blocks=8) if divides(collective, name) else Pieces(name, slices=8)
            assert pieces_of(collective, f"{name}/8K", 1 << 16) == wanted
        else:
            with pytest.raises(ValueError, match=f"whose messages can be cut .*, got '{name}/8K'"):
                pieces_of(collective, f"{name}/8K", 1 << 16)


@given(st.integers(0, 1 << 30), st.integers(1, 1 << 22))
def test_parts_are_as_few_as_keep_within_the_size(nbytes, most):
    parts = segments_of(nbytes, most)
    assert parts * most >= nbytes or parts == MOST_PARTS
    assert parts == 1 or (parts - 1) * most < nbytes


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
@given(nbytes=st.integers(0, 1 << 26), ranks=st.integers(2, 300))
def test_what_is_offered_can_run_and_is_something_new(collective, nbytes, ranks):
    offered = variants(collective, ALGORITHMS[collective], nbytes, ranks)
    methods = [name for name, spec in CALLS.items() if spec.collective == collective and name[-1] not in "vw"]
    for algorithm in offered:
        name, size = cut(algorithm)
        assert name in ALGORITHMS[collective]
        assert not any(why_not(method, algorithm) for method in methods)
        known = ALGORITHMS[collective][name]
        by_rank = collective in ("allreduce", "reduce_scatter") and not known.divides
        pipeline = ALGORITHMS[collective].get(known.alone, known).cut == "blocks"
        assert segments_of(nbytes // ranks if by_rank else nbytes, size) not in (1, 8 if pipeline else 1)


def test_only_what_can_be_cut_is():
    assert "ring" in cuttable("allgather")
    assert not why_not("Allgather", "ring/32K")
    assert why_not("Allgather", "doubling/32K")
    assert why_not("Alltoallw", "even/32K"), "a datatype's data are not cut"
    assert why_not("Allreduce", "ring/32K", Needs(order=True, whole=True))
    assert why_not("Reduce", "circulant/4K", Needs(order=True, whole=True))


def test_a_rule_may_name_an_algorithm_that_is_cut():
    def parse(algorithm, collective):
        rule = {"collective": collective, "algorithm": algorithm}
        return Rules.parse(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}), "f").rules[0]

    assert parse("ring/32K", "allgather").algorithm == "ring/32K"
    for wrong in ("ring/", "doubling/32K", "native/32K"):
        with pytest.raises(RulesError, match=r"expecting one of .* your own that schedules.register has registered"):
            parse(wrong, "allgather")
