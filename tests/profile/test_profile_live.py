"""Counting of messages: its bounds, its memory, and the parts of a file."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mpi.execution.specs import CALLS
from topompi.mpi.profile import Profile, ProfileError, read_profile, write_profile
from topompi.mpi.profile.counting import Counters, asked
from topompi.mpi.profile.file import part_of
from topompi.mpi.profile.recording import Call, RankRows
from topompi.mpi.profile.summary import summarise
from topompi.topology import TopologyInterface


@given(st.sampled_from(list(CALLS.values())), st.integers(1, 9), st.data(), st.integers(0, 10**6))
def test_what_a_call_is_asked_to_move_stays_within_its_ranks_and_what_mpi_defines(spec, size, data, nbytes):
    root = data.draw(st.integers(0, size - 1))
    sent, got = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for rank in range(size):
        peers, volume = asked(spec, size, rank, root, nbytes)
        assert rank not in peers
        assert len(set(peers.tolist())) == len(peers)
        sent[rank] = volume.sum()
        np.add.at(got, peers, volume)
    if spec.collective == "bcast":
        assert got.tolist() == [0 if rank == root else nbytes for rank in range(size)]
    if spec.collective == "allreduce":
        assert (sent <= 2 * nbytes).all()
    if spec.collective == "barrier":
        assert not sent.any()


def test_counters_take_memory_for_the_peers_and_kinds_that_occur():
    counters = Counters(1024, np.arange(1024))
    assert not counters.tables
    for nbytes in range(2000):  # more distinct calls than a group keeps
        counters.group(0, np.arange(1024, dtype=np.int32)).called("Bcast", 0, nbytes)
    record = counters.rows(0, "")
    assert sum(column.itemsize * len(column) for table in counters.tables.values() for column in table) == 16 * 1024
    assert record.messages.sum() == 2000 * 1023
    assert record.volume.sum() == sum(range(2000)) * 1023
    assert sum(call.times for call in record.calls) == 2000
    assert len(record.calls) < 600


def test_what_counting_took_is_in_the_file_and_is_said(tmp_path):
    calls = (Call("Bcast", 2, 8, 100), Call("Barrier", 2, 0, 50))
    rows = [replace(RankRows.of_rows(0, [(0, 1, 50, 400)]), calls=calls), RankRows.of_rows(1, [])]
    write_profile(Profile(2, "by hand", of_rank=rows, moves="EISRC", counting=5e-7), tmp_path / "run.topoprof")
    interface = TopologyInterface.place(["a", "b"], None)
    says = summarise(read_profile(tmp_path / "run.topoprof"), interface, hint=False)["says"]
    assert says == ["counting took about 0.50 us a call, 0.0001 s on the rank with most calls"]


def test_parts_of_several_runs_are_refused(tmp_path):
    path = tmp_path / "run.topoprof"
    write_profile(Profile(2, "by hand"), part_of(path, 0))
    write_profile(Profile(3, "by hand"), part_of(path, 1))
    with pytest.raises(ProfileError, match="expecting parts of one run"):
        read_profile(path)
    assert sys.modules["topompi.mpi.profile"]
