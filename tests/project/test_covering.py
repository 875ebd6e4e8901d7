"""Cases that cover all pairs, compared with the whole product."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import covering, pair, pairs_of, wanted_pairs

factors = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True), min_size=2
)


@given(factors, st.integers(0, 99))
def test_all_pairs_are_covered_by_few_cases(given_factors, seed):
    first, *others = given_factors
    last = others[-1]
    cannot_meet = {first: given_factors[first][0], last: given_factors[last][0]}
    has_others = len(given_factors[first]) > 1 and len(given_factors[last]) > 1

    def excluded(both):
        return has_others and both == cannot_meet

    def meet(one, other):
        return one == first

    cases = list(covering(given_factors, excluded, meet, Random(seed)))
    wanted = wanted_pairs(given_factors, excluded, meet)
    covered = set().union(*map(pairs_of, cases))
    assert wanted <= covered
    assert all(set(case) == set(given_factors) and case[name] in given_factors[name] for case in cases for name in case)
    assert not any(excluded(dict(one)) for one in covered if len(one) == 2)
    assert len(cases) <= len(wanted)
    assert wanted == {
        pair(first, x, name, y)
        for name in others
        for x in given_factors[first]
        for y in given_factors[name]
        if not excluded({first: x, name: y})
    }


def test_cases_are_few():
    """Of 7,776 in the product."""
    many = {name: range(6) for name in "abcde"}
    assert len(list(covering(many, lambda both: False, lambda *_: True, Random(1)))) < 80


def test_a_pair_that_fits_into_no_case_is_an_error():
    with pytest.raises(ValueError, match="expecting a case that has"):
        list(
            covering(
                {"a": [1], "b": [1], "c": [1]}, lambda both: "c" in both and "b" in both, lambda *_: True, Random(1)
            )
        )
