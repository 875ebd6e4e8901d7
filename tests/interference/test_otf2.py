"""The reader of OTF2 traces, on traces that the package otf2 writes; skipped where it is not installed."""

import numpy as np
import pytest

from tests.netsim.test_netsim import RATE, one_switch
from tests.support import refusal
from topompi.machine.interference.errors import InterferenceError
from topompi.machine.interference.traces import read_trace
from topompi.netsim import COMPUTE, run

otf2 = pytest.importorskip("otf2")

NBYTES = 10**6
SECONDS = NBYTES / RATE


class Recorder:
    """A trace of processes whose clock has microseconds."""

    def __init__(self, folder, size):
        self.writer = otf2.writer.Writer(str(folder), timer_resolution=10**6)
        known = self.writer.definitions
        node = known.system_tree_node("node")
        groups = [known.location_group(f"rank {rank}", system_tree_parent=node) for rank in range(size)]
        self.places = [known.location(f"thread {rank}", group=group) for rank, group in enumerate(groups)]
        kinds, mpi = otf2.GroupType, otf2.Paradigm.MPI
        everyone = known.group("", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=self.places)
        world = known.group("world", group_type=kinds.COMM_GROUP, paradigm=mpi, members=everyone.members)
        self.world = known.comm("MPI_COMM_WORLD", group=world)
        odd = known.group("odd", group_type=kinds.COMM_GROUP, paradigm=mpi, members=tuple(self.places[1::2]))
        self.odd = known.comm("odd", group=odd)
        self.regions = {name: known.region(name, paradigm=mpi) for name in ("MPI_Send", "MPI_Sendrecv", "MPI_Wait")}
        self.events = [self.writer.event_writer_from_location(place) for place in self.places]

    def call(self, rank, begin, end, *records, name="MPI_Send"):
        """Records (method of the event writer, then its arguments) in one MPI call."""
        events = self.events[rank]
        events.enter(begin, self.regions[name])
        for method, *about in records:
            getattr(events, method)(begin, *about)
        events.leave(end, self.regions[name])

    def read(self, folder):
        self.writer.close()
        return read_trace(folder / "traces.otf2")


def seconds(found):
    return run(one_switch(found.size, 0.0), [found.on(range(found.size))]).rank_seconds


def test_the_time_between_mpi_calls_is_a_burst_and_messages_are_as_recorded(tmp_path):
    record = Recorder(tmp_path / "t", 2)
    for rank, message in ((0, "mpi_send"), (1, "mpi_recv")):
        record.call(rank, 0, 10, (message, 1 - rank, record.world, 7, NBYTES))
        record.call(rank, 2_000_010, 2_000_020, (message, 1 - rank, record.world, 8, NBYTES))
    found = record.read(tmp_path / "t")
    assert found.ranks.messages.nbytes.tolist() == [NBYTES] * 2
    assert found.ranks.amount[found.ranks.kind == COMPUTE].tolist() == [2.0, 2.0]
    assert seconds(found) == pytest.approx([2 + 2 * SECONDS] * 2)


def test_the_messages_of_a_sendrecv_are_under_way_together(tmp_path):
    record = Recorder(tmp_path / "t", 2)
    for rank in range(2):
        records = [(way, 1 - rank, record.world, 7, NBYTES) for way in ("mpi_send", "mpi_recv")]
        record.call(rank, 0, 10, *records, name="MPI_Sendrecv")
    assert seconds(record.read(tmp_path / "t")) == pytest.approx([SECONDS] * 2)


def test_a_request_is_waited_for_where_it_completes(tmp_path):
    record = Recorder(tmp_path / "t", 2)
    record.call(0, 0, 10, ("mpi_isend", 1, record.world, 7, NBYTES, 1))
    record.call(0, 3_000_010, 3_000_020, ("mpi_isend_complete", 1), name="MPI_Wait")
    record.call(1, 0, 10, ("mpi_irecv_request", 5))
    record.call(1, 1_000_010, 1_000_020, ("mpi_irecv", 0, record.world, 7, NBYTES, 5), name="MPI_Wait")
    assert seconds(record.read(tmp_path / "t")) == pytest.approx([3, 1])


@pytest.mark.parametrize(
    ("collective", "sent", "received", "total"),
    [("ALLTOALL", 400, 400, 100 * 12), ("ALLGATHER", 400, 400, 100 * 12), ("BCAST", 0, 100, 300), ("BARRIER", 0, 0, 0)],
)
def test_a_collective_moves_the_bytes_that_its_communicator_exchanges(tmp_path, collective, sent, received, total):
    record = Recorder(tmp_path / "t", 4)
    for rank in range(4):
        kind = getattr(otf2.CollectiveOp, collective)
        record.call(rank, 0, 10, ("mpi_collective_end", kind, record.world, 0, sent, received))
    assert record.read(tmp_path / "t").ranks.messages.nbytes.sum() == total


def test_the_messages_of_all_collectives_together_are_limited(tmp_path, monkeypatch):
    record = Recorder(tmp_path / "t", 4)
    for rank in range(4):
        for at in range(20):
            alltoall = ("mpi_collective_end", otf2.CollectiveOp.ALLTOALL, record.world, 0, 400, 400)
            record.call(rank, 10 * at, 10 * at + 5, alltoall)
    monkeypatch.setenv("TOPOMPI_LIMITS", "rows=300")
    text = refusal(record.read, tmp_path / "t", error=InterferenceError)
    assert "messages of collectives: expecting at most 300 rows" in text


def test_a_collective_of_a_part_takes_place_among_its_members(tmp_path):
    record = Recorder(tmp_path / "t", 4)
    for rank in (1, 3):
        record.call(rank, 0, 10, ("mpi_collective_end", otf2.CollectiveOp.ALLTOALL, record.odd, 0, 200, 200))
    for rank in (0, 2):
        record.call(rank, 0, 10)
    messages = record.read(tmp_path / "t").ranks.messages
    assert np.stack((messages.source, messages.destination)).T.tolist() == [[1, 3], [3, 1]]
    assert messages.nbytes.tolist() == [100, 100]
