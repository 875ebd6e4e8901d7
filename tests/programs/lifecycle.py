"""How a topompi communicator begins, is kept, and ends; each test runs on all ranks, at any size.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from mpi4py import MPI

import topompi
import topompi.mpi.communicator.discovery
import topompi.mpi.execution.timing
import topompi.mpi.selection.trial
from topompi.errors import HostError, SourceError, TopompiError
from topompi.mpi.communicator.handle import calls_of
from topompi.mpi.communicator.state import state_of
from topompi.mpi.execution import running
from topompi.mpi.execution.talks import Answers
from topompi.mpi.selection.advisor import Advisor
from topompi.mpi.selection.choice import Choice
from topompi.mpi.selection.trial import Trial
from topompi.topology import TopologyInterface, load

pytestmark = pytest.mark.mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
SPEC = "xgft:2,2,2;1,1,1"
HOSTS = [f"h000{rank % 8}" for rank in range(SIZE)]


def raised_alike(call, kind):
    """Assert that a collective call raises one error, with one message, on all ranks."""
    try:
        call()
    except kind as error:
        detail = error.Get_error_class() if isinstance(error, MPI.Exception) else error
        said = f"{type(error).__name__}: {detail}"
    else:
        said = "nothing"
    assert len(set(WORLD.allgather(said))) == 1, said
    assert said != "nothing"
    return said


def test_the_topology_is_found_once_and_kept_with_the_communicator():
    comm = WORLD.Dup()
    first = topompi.Intracomm(comm, topology=SPEC, hosts=HOSTS)
    second = topompi.Intracomm(comm)
    assert topompi.interface(second) is topompi.interface(first)
    assert first == comm
    assert topompi.interface(first).virtual
    first.Free()


def test_only_rank_zero_reads_the_source():
    """The others name a file that is not there; and their own idea of the hosts does not count."""
    source = SPEC if RANK == 0 else "/nowhere/at/all"
    comm = topompi.Intracomm(WORLD.Dup(), topology=source, hosts=HOSTS if RANK == 0 else None)
    assert list(topompi.interface(comm).hosts) == list(dict.fromkeys(HOSTS))
    comm.Free()


def test_errors_are_raised_on_all_ranks():
    assert "/nowhere: expecting a file" in raised_alike(
        lambda: topompi.Intracomm(WORLD, topology="/nowhere"), SourceError
    )
    said = raised_alike(lambda: topompi.Intracomm(WORLD, topology=SPEC, hosts=["elsewhere"] * SIZE), HostError)
    assert "elsewhere" in said
    raised_alike(lambda: topompi.Intracomm(WORLD, topology=SPEC, hosts=["h0000"] * (SIZE + 1)), TopompiError)
    raised_alike(lambda: topompi.Intracomm(WORLD, topology="torus:0"), SourceError)
    interface = TopologyInterface.place(["a"] * (SIZE + 1))
    raised_alike(lambda: topompi.Intracomm(WORLD, topology=interface), ValueError)


def test_an_error_that_nobody_expected_is_raised_on_all_ranks_too(monkeypatch):
    """The others wait for rank 0's word, whatever happens to it."""

    def breaks(*_):
        raise KeyError("rank 0 alone")

    monkeypatch.setattr(topompi.mpi.communicator.discovery, "_discover", breaks)
    raised_alike(lambda: topompi.Intracomm(WORLD, topology=SPEC), KeyError)


def test_freed_communicators_refuse():
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
    data = np.zeros(1)
    comm.Bcast(data)
    comm.free()
    comm.free()
    raised_alike(lambda: comm.Bcast(data), RuntimeError)
    raised_alike(lambda: comm.Allreduce(MPI.IN_PLACE, data), RuntimeError)
    raised_alike(lambda: comm.Alltoall_init(np.zeros(SIZE), np.zeros(SIZE)), RuntimeError)
    MPI.Intracomm(comm).barrier()  # the communicator itself lives on
    comm.Free()
    assert comm == MPI.COMM_NULL


def test_freeing_the_plain_handle_frees_ours():
    plain = WORLD.Dup()
    ours = topompi.Intracomm(plain, topology=SPEC, hosts=HOSTS)
    ours.Bcast(np.zeros(1))
    state = state_of(ours)
    plain.Free()
    assert not state.usable


def test_a_callback_may_reduce_objects_while_its_communicator_is_freed():
    """Its attribute is older than topompi's, which MPICH 5.0 deletes first."""
    found = []
    key = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, value: found.append(comm.allreduce(1)))
    parent = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
    comm = parent.Dup()
    comm.Set_attr(key, None)
    state_of(comm).groups.connect()
    comm.Free()
    assert found == [SIZE]
    MPI.Comm.Free_keyval(key)
    parent.Free()


def test_a_new_topology_takes_the_place_of_the_old():
    comm = WORLD.Dup()
    first = topompi.Intracomm(comm, topology=SPEC, hosts=HOSTS)
    first.Bcast(np.zeros(1))
    second = topompi.Intracomm(comm, topology=SPEC, hosts=["h0000"] * SIZE)
    assert topompi.interface(second).hosts == ("h0000",)
    data = np.full(3, RANK)
    first.Bcast(data, SIZE - 1)
    assert (data == SIZE - 1).all()
    assert topompi.interface(first) is topompi.interface(second)
    comm.Free()


def calls(comm, data, root, op):
    """Of each collective whose calls are remembered, one call."""
    size = comm.Get_size()
    one, other = np.full(data, 1.0), np.empty(data)
    each, others = np.full((size, data), 1.0), np.empty((size, data))
    return {
        "Bcast": lambda: comm.Bcast(one, root),
        "Gather": lambda: comm.Gather(one, others, root),
        "Scatter": lambda: comm.Scatter(each, other, root),
        "Allgather": lambda: comm.Allgather(one, others),
        "Alltoall": lambda: comm.Alltoall(each, others),
        "Reduce": lambda: comm.Reduce(one, other, op, root),
        "Allreduce": lambda: comm.Allreduce(one, other, op),
        "Reduce_scatter": lambda: comm.Reduce_scatter(each, other, None, op),
        "Reduce_scatter_block": lambda: comm.Reduce_scatter_block(each, other, op),
    }


def test_calls_like_an_earlier_one_are_not_chosen_for_again():
    """Like: of one method, as long, from one root, by one operation; and as long as the communicator is not freed."""
    chosen = []

    class Counting:
        trials: ClassVar = {}

        def known(self, key):
            """Nothing: rank 0 would be asked."""

        def choose(self, method, *call, **more):
            chosen.append(method)
            return Choice("native", "as it is")

    comm = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(HOSTS, load(SPEC).routes))
    state_of(comm).selector = Counting()
    flat = SIZE == 1  # never chosen for
    other = topompi.Intracomm(comm)
    last = SIZE - 1
    for data, root, op, new in ((8, 0, MPI.SUM, True), (8, 0, MPI.SUM, False), (9, 0, MPI.SUM, True)):
        for method, call in calls(comm, data, root, op).items():
            chosen.clear()
            call()
            assert chosen == ([method] if new and not flat else []), (method, data, root)
    for method, call in calls(comm, 8, last, MPI.MAX).items():
        chosen.clear()
        call()
        apart = method not in ("Allgather", "Alltoall") and (last or method not in ("Bcast", "Gather", "Scatter"))
        assert chosen == ([method] if apart and not flat else []), method
    chosen.clear()
    buffer = np.full(8, 2.0 if RANK == 0 else 0.0)
    comm.Bcast([buffer, MPI.DOUBLE])
    assert (buffer == 2).all()
    assert chosen == ([] if flat else ["Bcast"])
    comm.free()
    for one in (comm, other):
        for call in calls(one, 8, 0, MPI.SUM).values():
            raised_alike(call, RuntimeError)
    MPI.Comm.Free(comm)


def test_where_nothing_is_to_be_chosen_the_library_runs_every_call():
    """As long as the communicator is not freed, through whichever handle."""
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS[:1] * SIZE)
    grid = comm.Create_cart([SIZE])
    grid.Barrier()  # its levels are found at its first use
    for made, kind in ((comm, topompi.Intracomm), (grid, topompi.Cartcomm)):
        assert isinstance(made, kind)
        assert all(getattr(made, name).__self__ is made for name in ("Bcast", "allreduce", "Ibcast", "Bcast_init"))
    before = topompi.Intracomm.Bcast.__get__(comm)  # as if it had been taken before
    for call in (comm.Bcast, before):
        for message in (buffer := np.full(8, 2.0 if RANK == 0 else 0.0), [buffer, 8, MPI.DOUBLE]):
            call(message)
            assert (buffer == 2).all()
    assert calls_of(comm).all  # that it passes by our method is for tests/mpi/dispatch/test_direct.py to show
    grid.free()
    other = topompi.Intracomm(comm)
    other.free()
    assert not calls_of(comm).all
    for one in (comm, other):
        assert type(one) is topompi.Intracomm
        for call in calls(one, 8, 0, MPI.SUM).values():
            raised_alike(call, RuntimeError)
    raised_alike(lambda: before(np.zeros(1)), RuntimeError)
    MPI.Comm.Free(comm)


def test_a_class_derived_from_ours_keeps_its_methods():
    said = []

    class Loud(topompi.Intracomm):
        def Barrier(self):
            said.append("Barrier")
            super().Barrier()

    comm = Loud(WORLD.Dup(), topology=SPEC, hosts=HOSTS[:1] * SIZE)
    assert type(comm) is Loud
    comm.Barrier()
    comm.Bcast(np.zeros(3))
    assert said == ["Barrier"]
    comm.free()
    raised_alike(comm.Barrier, RuntimeError)
    MPI.Comm.Free(comm)


@pytest.fixture
def empty_memory(monkeypatch):
    """A memory of trials that begins and ends with the test."""
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        yield


@pytest.mark.usefixtures("empty_memory")
@pytest.mark.parametrize("apart", [False, True])
def test_a_trial_begins_its_calls_together_and_chooses_for_few_of_them(monkeypatch, apart):
    """So too where rank 0 passes another kind of message, whose like are always chosen for."""
    monkeypatch.setenv("TOPOMPI_TUNE", "measure")
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
    if SIZE == 1:  # never chosen for
        return
    selector = state_of(comm).selector
    choose, step, chosen, entered, begun, ran = selector.choose, Trial.next, [], [], [], []
    monkeypatch.setattr(selector, "choose", lambda *call, **more: chosen.append(call) or choose(*call, **more))

    def clock():
        begun.append((len(entered), now := time.perf_counter()))
        return now

    monkeypatch.setattr(topompi.mpi.execution.timing, "perf_counter", clock)
    stages = tuple(replace(stage, hopeless=np.inf) for stage in topompi.mpi.selection.trial.SHORT_CALLS)
    monkeypatch.setattr(topompi.mpi.selection.trial, "SHORT_CALLS", stages)  # so that there are turns
    monkeypatch.setattr(Trial, "next", lambda trial: ran.append(step(trial)) or ran[-1])
    special = apart and RANK == 0
    message = [np.zeros(16), MPI.DOUBLE] if special else np.zeros(16)
    others = 0  # calls that run another algorithm than the one before, or go on after a stage
    while not selector.final:
        upcoming = [trial.upcoming for trial in selector.trials.values()]
        others += not upcoming or upcoming[0] is None or upcoming[0] != ran[-1]
        time.sleep(0.002 if len(entered) % SIZE == RANK else 0)
        entered.append(time.perf_counter())
        comm.Bcast(message)
    begins = np.array([min(at for call, at in begun if call == number + 1) for number in range(len(entered) - 1)])
    first, last = np.empty_like(begins), np.empty_like(begins)
    WORLD.Allreduce(begins, first, MPI.MIN)
    WORLD.Allreduce(np.array(entered[:-1]), last, MPI.MAX)  # all but the call that settled it: that is no trial's
    assert (first >= last).all()
    assert others < len(entered)
    assert len(chosen) == (len(entered) if special else others)
    assert len({choice.algorithm for found in WORLD.allgather(selector.final) for choice in found.values()}) == 1
    comm.Free()


def test_bad_roots_are_refused_as_mpi_does():
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
    plain = WORLD.Dup()
    for bad in (SIZE, -5):
        ours, theirs = (
            raised_alike(lambda c=c, bad=bad: c.Bcast(np.zeros(1), bad), MPI.Exception) for c in (comm, plain)
        )
        assert ours == theirs
    comm.Free()
    plain.Free()


def test_sub_communicators_have_the_lowest_ranks_as_leaders():
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=[f"h000{rank // 2 % 8}" for rank in range(SIZE)])
    parts = topompi.sub_communicators(comm)
    if SIZE == 8:
        names = ["leaders within 1 hop", "leaders host", "ranks"]
        members = {0: ([0, 4], [0, 2], [0, 1]), 4: ([0, 4], [4, 6], [4, 5]), 3: (None, None, [2, 3])}.get(RANK)
        world = comm.Get_group()
        for name, expected in zip(names, members or (), strict=False):
            if expected is None:
                assert name not in parts
            else:
                group = parts[name].Get_group()
                assert group.Translate_ranks(None, world) == expected
    assert all(type(part) is MPI.Intracomm for part in parts.values())
    comm.Free()


def test_native_methods_and_children_work():
    comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
    assert comm.allreduce(1) == SIZE
    assert comm.bcast(RANK, SIZE - 1) == SIZE - 1
    assert comm.topology == WORLD.topology  # mpi4py's own property keeps its meaning
    for child in (comm.Split(0, RANK), comm.Dup(), topompi.Intracomm(comm.Split(0, RANK))):
        data = np.array([RANK])
        child.Bcast(data, SIZE - 1)
        assert data[0] == SIZE - 1
        child.Free()
    comm.Free()


def test_environment():
    """Virtual hosts from TOPOMPI_HOSTS, in blocks over the world; a host that is not there, by TOPOMPI_FALLBACK."""
    os.environ["TOPOMPI_TOPOLOGY"], os.environ["TOPOMPI_HOSTS"] = SPEC, "h[0000-0001]"
    try:
        comm = topompi.Intracomm(WORLD.Dup())
        assert topompi.interface(comm).virtual
        assert topompi.interface(comm).hosts == ("h0000", "h0001")[:SIZE]
        comm.Free()
        os.environ["TOPOMPI_HOSTS"] = "h0000,nowhere"
        if SIZE > 1:
            raised_alike(lambda: topompi.Intracomm(WORLD.Dup()), HostError)
            os.environ["TOPOMPI_FALLBACK"] = "silent"
            comm = topompi.Intracomm(WORLD.Dup())
            assert topompi.interface(comm).routes is None
            comm.Free()
        os.environ["TOPOMPI_FALLBACK"] = "sometimes"
        said = raised_alike(lambda: topompi.Intracomm(WORLD.Dup()), TopompiError)
        assert "TOPOMPI_FALLBACK: expecting one of error, print, silent, got 'sometimes'" in said
    finally:
        for name in ("TOPOMPI_TOPOLOGY", "TOPOMPI_HOSTS", "TOPOMPI_FALLBACK"):
            os.environ.pop(name, None)


def test_without_a_source_the_hosts_own_levels_are_taken():
    comm = topompi.Intracomm(WORLD.Dup())
    assert not topompi.interface(comm).virtual
    assert topompi.interface(comm).num_hosts == 1
    comm.Free()


def counted(monkeypatch, kind, name):
    """The calls of a method from now on."""
    made, call = [], getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda *given, **named: made.append(1) or call(*given, **named))
    return made


@pytest.mark.skipif(SIZE == 1, reason="never chosen for")
def test_what_was_chosen_is_not_worked_out_again_for_the_same_ranks(monkeypatch):
    """A duplicate takes the choices over; in other communicators of the same ranks rank 0 remembers its answers."""
    monkeypatch.setenv("TOPOMPI_NATIVE_CALLS", "0")
    comm = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(HOSTS, load(SPEC).routes))
    advised, asked = counted(monkeypatch, Advisor, "advise"), counted(monkeypatch, Answers, "ask")
    total = np.empty(2)
    for turn in range(3):
        children = [comm.Split(0, RANK), comm.Split(0, -RANK), comm.Dup()]
        for child in children:
            child.Allreduce(np.full(2, float(RANK + turn)), total)
            assert (total == sum(range(SIZE)) + SIZE * turn).all()
        again = children[0].Dup()
        again.Allreduce(np.ones(2), total)
        for child in (again, *children):
            child.Free()
    assert len(asked) == 9  # the duplicates of children that had chosen asked nothing
    assert len(advised) == {0: 1, SIZE - 1: 1}.get(RANK, 0)  # rank 0 of either order
    comm.Allreduce(np.ones(2), total)
    with_all = comm.Dup()
    with_all.Allreduce(np.ones(2), total)
    assert len(asked) == 10
    with_all.Free()
    comm.Free()


@pytest.mark.skipif(SIZE == 1, reason="never chosen for")
@pytest.mark.parametrize("algorithm", ["native", "doubling"])
def test_rules_are_known_to_all_ranks_and_none_asks(monkeypatch, algorithm):
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.json")
        rule = {"collective": "allreduce", "algorithm": algorithm}
        rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}))
        monkeypatch.setenv("TOPOMPI_RULES", str(rules) if RANK == 0 else "/nowhere")
        comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
        WORLD.Barrier()  # rank 0's file is read
    asked, total = counted(monkeypatch, Answers, "ask"), np.empty(2)
    for _ in range(2):
        for child in (comm.Dup(), comm.Split(0, -RANK), comm.Create_cart([SIZE])):
            child.Allreduce(np.full(2, float(RANK)), total)
            assert (total == sum(range(SIZE))).all()
            assert state_of(child).selector.choose("Allreduce", 16).algorithm == algorithm
            child.Free()
    assert not asked
    comm.Free()


@pytest.mark.skipif(SIZE == 1, reason="never chosen for")
@pytest.mark.parametrize("calls", [8, 2, 0])
def test_small_ones_of_the_first_calls_of_a_new_communicator_are_the_librarys(monkeypatch, calls):
    """Whatever rules say; long ones are not, and none of a communicator that the user wrapped."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.json")
        rule = {"collective": "allreduce", "algorithm": "doubling"}
        rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}))
        monkeypatch.setenv("TOPOMPI_RULES", str(rules) if RANK == 0 else "/nowhere")
        monkeypatch.setenv("TOPOMPI_NATIVE_CALLS", ("" if calls == 8 else str(calls)) if RANK == 0 else "5")
        comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
        WORLD.Barrier()  # rank 0's file is read
    ran, run = [], running.run
    monkeypatch.setattr(running, "run", lambda *call: ran.append(call[2]) or run(*call))
    total, long = np.empty(2), np.empty(1 << 14)
    for child in (comm, comm.Dup(), comm.Split(0, -RANK)):
        for number in range(10):
            ran.clear()
            message = np.full(2, float(RANK))
            child.Allreduce([message, MPI.DOUBLE] if RANK else message, total)
            assert (total == sum(range(SIZE))).all()
            assert ran == (["doubling"] if child is comm or 2 * number >= calls else []), (number, ran)
            ran.clear()
            child.Allreduce(np.ones(1 << 14), long)
            assert ran == ["doubling"]
    comm.Free()


@pytest.mark.skipif(SIZE == 1, reason="never chosen for")
def test_a_misused_call_counts_among_the_first_ones_whatever_a_rank_can_tell_of_it(monkeypatch):
    """Rank 0 cannot tell how long the misused calls are, the others can; all refuse them."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.json")
        rule = {"collective": "allreduce", "algorithm": "doubling"}
        rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [rule]}))
        monkeypatch.setenv("TOPOMPI_RULES", str(rules))
        monkeypatch.setenv("TOPOMPI_NATIVE_CALLS", "8")
        comm = topompi.Intracomm(WORLD.Dup(), topology=SPEC, hosts=HOSTS)
        WORLD.Barrier()  # rank 0's file is read
    ran, native = [], MPI.Intracomm.Allreduce  # in place of plans, for which a rank would wait
    monkeypatch.setattr(running, "run", lambda *call: ran.append(call[2]) or native(call[0].groups.comm, *call[3]))
    long, total = np.zeros(1 << 14), np.empty(2)
    for child in (comm.Dup(), comm.Split(0, -RANK)):
        for message in (3, np.zeros(3, object), long[::2]):
            with pytest.raises(Exception):  # noqa: B017, PT011 # of several kinds
                child.Allreduce(*((long, None) if RANK else (message, long)))
        first = []
        for _ in range(8):
            ran.clear()
            child.Allreduce(np.ones(2), total)
            first.append(bool(ran))
        assert len(set(WORLD.allgather(tuple(first)))) == 1, first
        assert first == [False] * 5 + [True] * 3
        child.Free()
    comm.Free()


def test_what_is_left_is_freed_by_mpi_at_the_end():
    topompi.Intracomm(WORLD, topology=SPEC, hosts=HOSTS).Bcast(np.zeros(1))
