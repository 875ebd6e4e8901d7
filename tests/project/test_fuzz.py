"""A short campaign of damaged inputs against every reader; ``make fuzz`` is the long one."""

from __future__ import annotations

import time
from random import Random

import pytest

from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.crafted import promises
from tests.fuzz.mutations import mutate
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import small

SECONDS = 8.0  # of mutations, or as many as below


@pytest.mark.long
def test_damaged_and_hostile_inputs_raise_errors_of_ours_within_memory_and_time() -> None:
    random = Random(20)
    seeds = small()
    assert {reader for reader, _ in seeds} == set(READERS)
    campaign = Campaign()
    campaign.run([Case("seed", *one) for one in seeds])
    assert {reader for reader, outcome in campaign.counts if outcome == "read"} == set(READERS)
    assert not any(outcome == "refused" for _, outcome in campaign.counts)
    cases = (Case(f"mutation {number}", reader, mutate(data, random)) for number in range(5) for reader, data in seeds)
    hostile = [Case(*one) for one in promises()]
    campaign.run([*hostile, *cases], time.monotonic() + SECONDS)
    assert campaign.failures == []
