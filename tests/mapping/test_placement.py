"""Placement: properties of block, cyclic and random over any numbers of ranks and hosts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mapping import place

sizes = st.integers(1, 200)
host_lists = st.integers(1, 40).map(lambda count: [f"h{number}" for number in range(count)])
seeds = st.integers(0, 2**32)


@given(sizes, host_lists)
def test_block_keeps_neighbours_together_and_the_first_hosts_hold_the_rest(size: int, hosts: list[str]) -> None:
    placed = place(size, hosts, "block")
    shares = [size // len(hosts) + (number < size % len(hosts)) for number in range(len(hosts))]
    assert placed == [host for host, share in zip(hosts, shares, strict=True) for _ in range(share)]


@given(sizes, host_lists)
def test_cyclic_deals_ranks_to_hosts_in_turn(size: int, hosts: list[str]) -> None:
    assert place(size, hosts, "cyclic") == [hosts[rank % len(hosts)] for rank in range(size)]


@given(sizes, host_lists, seeds)
def test_random_is_a_permutation_of_block_that_its_seed_fixes(size: int, hosts: list[str], seed: int) -> None:
    placed = place(size, hosts, f"random:{seed}")
    assert Counter(placed) == Counter(place(size, hosts, "block"))
    assert placed == place(size, hosts, f"random:{seed}")


def test_random_seeds_differ() -> None:
    hosts = [f"h{number}" for number in range(64)]
    assert place(64, hosts, "random:1") != place(64, hosts, "random:2") != place(64, hosts, "block")


@given(host_lists.flatmap(st.permutations))
def test_hosts_given_one_a_rank_are_taken_as_they_are(hosts: list[str]) -> None:
    assert place(len(hosts), hosts) == hosts == place(len(hosts), hosts, "block")


def test_names_given_twice_are_filled_twice() -> None:
    assert place(4, ["a", "b", "a", "a"]) == ["a", "b", "a", "a"]
    assert place(4, ["a", "a", "b"], "block") == ["a", "a", "a", "b"]


@given(host_lists, st.data())
def test_fewer_ranks_than_hosts_take_the_first_hosts_one_each(hosts: list[str], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(hosts)))
    assert place(size, hosts) == hosts[:size]


@pytest.mark.parametrize(
    ("size", "hosts", "policy", "message"),
    [
        (0, ["a"], "block", "expecting at least 1 rank, got 0"),
        (2, [], None, "expecting at least 1 host, got none"),
        (2, ["a"], "spread", "expecting block, cyclic or random:SEED .*'spread'"),
        (2, ["a"], "random", "random:SEED"),
        (2, ["a"], "random:", "random:SEED"),
        (2, ["a"], "random:-1", "random:SEED"),
        (2, ["a"], "random:x", "random:SEED"),
        (2, ["a"], "block:1", "random:SEED"),
    ],
)
def test_what_cannot_be_placed_is_refused(size: int, hosts: list[str], policy: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place(size, hosts, policy)
