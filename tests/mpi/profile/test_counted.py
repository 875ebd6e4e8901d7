"""Counting of calls: short ways count as the long ones, and the time of counting is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

from topompi.mpi.communicator.handle import keep
from topompi.mpi.execution.buffers import block
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.profile.collectives import collective
from topompi.mpi.profile.counting import Recorded, TrafficCounters
from topompi.mpi.profile.messages import quick_bytes, sending

ARRAY, EIGHT, INTS = np.zeros(3), np.zeros(8), np.zeros(3, dtype=np.int32)
MESSAGES = [
    ARRAY,
    [ARRAY, MPI.DOUBLE],
    (ARRAY, MPI.DOUBLE),
    [INTS, MPI.DOUBLE],  # 12 bytes, one double
    [ARRAY, 2, MPI.DOUBLE],
    [ARRAY, MPI.DOUBLE_INT],  # with gaps
    bytearray(5),
]
COLLECTIVES = [
    *(("Bcast", (message, root)) for message in MESSAGES for root in (0, np.int64(2))),
    ("Allreduce", (EIGHT, EIGHT.copy())),
    ("Allreduce", (MPI.IN_PLACE, [EIGHT, MPI.DOUBLE])),
    ("Reduce", (MPI.IN_PLACE, EIGHT)),
    ("Gather", (ARRAY, None, 5)),
    ("Scatter", (None, [INTS, MPI.INT], 5)),
    ("Allgather", (EIGHT, EIGHT)),
    ("Alltoall", (EIGHT, EIGHT)),
    ("Alltoallv", ([EIGHT, [1] * 8], [EIGHT, [1] * 8])),
    ("Allgatherv", (ARRAY, [EIGHT, [1] * 8])),
    ("Scan", (ARRAY, ARRAY)),
    ("Barrier", ()),
]


class Sent:
    """The messages of a plan; two are equal only if they are one."""

    def __init__(self, peers, nbytes):
        self.peers, self.nbytes = peers, nbytes


class Communicator:
    """A communicator of eight ranks, of which the last two are not recorded; this is rank 4."""

    def __init__(self, counters, sent=None):
        executor = SimpleNamespace(ran=None if sent is None else SimpleNamespace(sent=sent))
        group = counters.group(4, np.array([0, 1, 2, 3, 4, 5, -1, -1], dtype=np.int32))
        self._topompi_state, self._topompi_recorded = SimpleNamespace(executor=executor), Recorded(group)


def native(*_, **__):
    return "done"


def rows_of(make, calls, sent=None):
    """The counters after some calls, as rows and as they are."""
    counters = TrafficCounters(6, np.arange(6))
    for args, named in calls:
        method = make(counters)
        assert method(Communicator(counters, sent), *args, **named) == "done"
    rows = counters.rows(4, "")
    return (rows.kind.tolist(), rows.peer.tolist(), rows.messages.tolist(), rows.volume.tolist(), rows.calls), counters


def test_bytes_of_arrays_are_known_without_reading_the_message_and_equal_those_read():
    known = [(quick_bytes(message), message) for message in MESSAGES if quick_bytes(message) is not None]
    assert [nbytes for nbytes, _ in known] == [block(message, readonly=True).size for _, message in known] == [24, 24]


@pytest.mark.parametrize("at", range(len(COLLECTIVES)))
@pytest.mark.parametrize("planned", [False, True])
def test_a_collective_counts_the_same_with_named_arguments(at, planned):
    name, args = COLLECTIVES[at]
    sent = Sent(np.array([2]), np.array([70])) if planned else None

    def make(counters):
        return collective(native, counters, None, CALLS[name])

    named = dict(zip(CALLS[name].parameters, args, strict=False))
    assert rows_of(make, [(args, {})], sent)[0] == rows_of(make, [((), named)], sent)[0]


def test_the_mean_time_of_counting_is_that_of_all_calls():
    rows, counters = rows_of(
        lambda counters: sending(native, counters, None),
        [((ARRAY, 1), {})] * 5 + [(([ARRAY, MPI.DOUBLE], 1), {"tag": 3})] * 4,
    )
    assert rows == ([0], [1], [9], [9 * 24], ())
    assert counters.timed_calls == 9
    assert counters.seconds_a_call(1e-7) == pytest.approx(counters.timed_seconds / 9)
    counters.table("E")[0][1] += 9  # objects, whose counting is not timed
    assert counters.seconds_a_call(1e-7) == pytest.approx((9e-7 + counters.timed_seconds) / 18)


def test_a_message_to_a_rank_that_is_not_recorded_counts_for_none():
    rows, _ = rows_of(lambda counters: sending(native, counters, None), [((ARRAY, 7), {})])
    assert rows == ([], [], [], [], ())


def test_a_call_that_fails_is_not_counted():
    def failing(*_, **__):
        raise ValueError("no")

    counters = TrafficCounters(6, np.arange(6))
    for method in (sending(failing, counters, None), collective(failing, counters, None, CALLS["Bcast"])):
        with pytest.raises(ValueError, match="no"):
            method(Communicator(counters), ARRAY, 1)
    assert len(counters.rows(4, "").kind) == 0


def test_the_first_call_of_a_communicator_makes_its_group():
    counters, made = TrafficCounters(6, np.arange(6)), []

    def group_of(comm):
        made.append(comm)
        group = counters.group(4, np.arange(6, dtype=np.int32))
        keep(comm, "_topompi_recorded", Recorded(group))
        return group

    comm, send = SimpleNamespace(), sending(native, counters, group_of)
    for _ in range(3):
        send(comm, ARRAY, 1)
    assert made == [comm]
    assert counters.rows(4, "").messages.tolist() == [3]
    other = TrafficCounters(6, np.arange(6))  # of a later recording, on the same communicator
    sending(native, other, lambda comm: other.group(4, np.arange(6, dtype=np.int32)))(comm, ARRAY, 1)
    assert other.rows(4, "").messages.tolist() == [1]
    assert counters.rows(4, "").messages.tolist() == [3]
