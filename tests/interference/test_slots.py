"""The source's toy model of two jobs on one link, slot by slot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.jokanovic.slots import Alternating, progress
from topompi.errors import TopompiError


def toy(weight, other, first):
    """Slots of progress of A and B, with lanes of these weights, in 27 slots."""
    a, b = Alternating(3, 4, weight), Alternating(4, 2, other)
    return tuple(progress([a, b], 27) if first == "A" else progress([b, a], 27)[::-1])


# Jokanovic 2014, figures 5.3 to 5.5. The second half has the other job first; the source has the order of the first.
@pytest.mark.parametrize(
    ("weights", "first", "slots"),
    [
        ((1, 1), "A", (21, 18)),
        ((3, 1), "A", (27, 21)),
        ((1, 4), "B", (14, 27)),
        ((1, 1), "B", (20, 18)),
        ((3, 1), "B", (26, 20)),
        ((1, 4), "A", (16, 26)),
    ],
)
def test_the_source_s_toy_jobs_progress_as_it_prints(weights, first, slots):
    assert toy(*weights, first) == slots


JOBS = st.builds(Alternating, st.integers(1, 6), st.integers(0, 6), st.integers(1, 5))


@given(JOBS, st.integers(0, 60))
def test_a_job_alone_never_waits(job, slots):
    assert progress([job], slots) == [slots]


@given(st.lists(JOBS, min_size=1, max_size=4), st.integers(0, 60))
def test_the_link_never_rests_while_a_job_has_a_packet(jobs, slots):
    """Up to one job per slot sends, so the slots in which jobs send are those in which any job has a packet."""
    before, sent, wanted = [0] * len(jobs), 0, 0
    for slot in range(slots):
        wants = [job.sends(done) for job, done in zip(jobs, before, strict=True)]
        after = progress(jobs, slot + 1)
        moved = [now - then for now, then in zip(after, before, strict=True)]
        assert all(step == 1 for step, want in zip(moved, wants, strict=True) if not want)
        sent += sum(step for step, want in zip(moved, wants, strict=True) if want)
        wanted += any(wants)
        before = after
    assert sent == wanted


@given(st.integers(1, 5), st.integers(1, 5))
def test_jobs_that_never_compute_share_the_link_by_their_weights(one, other):
    rounds = 7
    found = progress([Alternating(1, 0, one), Alternating(1, 0, other)], rounds * (one + other))
    assert found == [rounds * one, rounds * other]


def test_jobs_without_packets_are_refused():
    with pytest.raises(TopompiError, match="expecting packets and a weight of at least 1"):
        Alternating(0, 1)
