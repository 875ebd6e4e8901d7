"""Counting of calls in C and in Python: both give the same numbers, and the time of counting is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

from topompi.communicator.handle import kept_of
from topompi.execution.specs import CALLS
from topompi.profile import counted
from topompi.profile.collectives import collective
from topompi.profile.counting import Counters
from topompi.profile.messages import sending

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
SENDS = [((message, dest), {}) for message in MESSAGES for dest in (0, 5, np.int64(3), MPI.PROC_NULL)]
SENDS += [((ARRAY,), {"dest": 2}), ((ARRAY, 1, 7), {}), ((), {"tag": 3, "dest": 1, "buf": INTS})]
COLLECTIVES = [
    *(("Bcast", (message,), named) for message in MESSAGES for named in ({}, {"root": 3}, {"root": np.int64(2)})),
    ("Bcast", (ARRAY, 1), {}),
    ("Bcast", (), {"root": 1, "buf": ARRAY}),
    ("Allreduce", (EIGHT, EIGHT.copy()), {"op": MPI.MAX}),
    ("Allreduce", (MPI.IN_PLACE, [EIGHT, MPI.DOUBLE]), {}),
    ("Reduce", (MPI.IN_PLACE, EIGHT), {"root": 0}),
    ("Gather", (ARRAY, None), {"root": 5}),
    ("Scatter", (None, [INTS, MPI.INT]), {"root": 5}),
    ("Allgather", (EIGHT, EIGHT), {}),
    ("Alltoall", (EIGHT, EIGHT), {}),
    ("Alltoallv", ([EIGHT, [1] * 8], [EIGHT, [1] * 8]), {}),
    ("Allgatherv", (ARRAY, [EIGHT, [1] * 8]), {}),
    ("Scan", (ARRAY, ARRAY), {}),
    ("Barrier", (), {}),
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
        self._topompi_kept = SimpleNamespace(held=SimpleNamespace(executor=executor), group=group)


def native(*_, **__):
    return "done"


def rows_of(make, calls, sent=None):
    """The counters after some calls, and how many of them Python counted."""
    counters = Counters(6, np.arange(6))
    for args, named in calls:
        method = make(counters)
        assert method(Communicator(counters, sent), *args, **named) == "done"
    rows = counters.rows(4, "")
    return (rows.kind.tolist(), rows.peer.tolist(), rows.messages.tolist(), rows.volume.tolist(), rows.calls), counters


def both(make, calls, monkeypatch, sent=None):
    if counted.Counted is None:
        pytest.skip("topompi was installed without a compiler")
    with monkeypatch.context() as without:
        without.setattr(counted, "Counted", None)
        in_python, counters = rows_of(make, calls, sent)
        assert counters.slow_calls == len(calls)
    in_c, counters = rows_of(make, calls, sent)
    assert in_c == in_python
    return in_c, counters


@pytest.mark.parametrize("at", range(len(SENDS)))
def test_a_message_is_counted_in_c_as_in_python(at, monkeypatch):
    both(lambda counters: sending(native, counters, None), SENDS[at : at + 1], monkeypatch)


@pytest.mark.parametrize("at", range(len(COLLECTIVES)))
@pytest.mark.parametrize("planned", [False, True])
def test_a_collective_is_counted_in_c_as_in_python(at, planned, monkeypatch):
    name, *call = COLLECTIVES[at]
    sent = Sent(np.array([2]), np.array([70])) if planned else None
    both(lambda counters: collective(native, counters, None, CALLS[name]), [call], monkeypatch, sent)


def test_arrays_are_counted_without_python_and_other_messages_are_timed(monkeypatch):
    def make(counters):
        return sending(native, counters, None)

    rows, counters = both(make, [((ARRAY, 1), {})] * 5 + [(([ARRAY, MPI.DOUBLE], 1), {"tag": 3})] * 4, monkeypatch)
    assert rows == ([0], [1], [9], [9 * 24], ())
    assert counters.slow_calls == 0
    assert counters.seconds_a_call(1e-7) == pytest.approx(1e-7)
    rows, counters = both(make, [((ARRAY, 1), {})] * 6 + [((bytearray(5), 1), {})] * 3, monkeypatch)
    assert counters.slow_calls == 3
    assert counters.seconds_a_call(1e-7) == pytest.approx((6e-7 + counters.slow_seconds) / 9)


def test_a_message_to_a_rank_that_is_not_recorded_counts_for_none(monkeypatch):
    rows, _ = both(lambda counters: sending(native, counters, None), [((ARRAY, 7), {})], monkeypatch)
    assert rows == ([], [], [], [], ())


def test_a_call_that_fails_is_not_counted():
    def failing(*_, **__):
        raise ValueError("no")

    counters = Counters(6, np.arange(6))
    for method in (sending(failing, counters, None), collective(failing, counters, None, CALLS["Bcast"])):
        with pytest.raises(ValueError, match="no"):
            method(Communicator(counters), ARRAY, 1)
    assert len(counters.rows(4, "").kind) == 0


def test_the_first_call_of_a_communicator_makes_its_group():
    counters, made = Counters(6, np.arange(6)), []

    def group_of(comm):
        made.append(comm)
        kept_of(comm).group = counters.group(4, np.arange(6, dtype=np.int32))
        return kept_of(comm).group

    comm, send = SimpleNamespace(), sending(native, counters, group_of)
    for _ in range(3):
        send(comm, ARRAY, 1)
    assert made == [comm]
    assert counters.rows(4, "").messages.tolist() == [3]
    other = Counters(6, np.arange(6))  # of a later recording, on the same communicator
    sending(native, other, lambda comm: other.group(4, np.arange(6, dtype=np.int32)))(comm, ARRAY, 1)
    assert other.rows(4, "").messages.tolist() == [1]
    assert counters.rows(4, "").messages.tolist() == [3]


def test_a_table_that_does_not_fit_is_refused():
    if counted.Counted is None:
        pytest.skip("topompi was installed without a compiler")
    counters = Counters(6, np.arange(6))
    for wrong in (
        {"message": 2},
        {"peer": -2},
        {"name": "Bcast"},
        {"volume": Counters(5, np.arange(5)).table("E")[0]},
    ):
        messages, volume = counters.table("E")
        given = {"message": 0, "peer": 1, "name": None, "messages": messages, "volume": volume, **wrong}
        with pytest.raises(ValueError, match="expecting"):
            counted.Counted(native, native, counters, {}, ("buf", "dest"), **given)
