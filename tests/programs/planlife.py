"""What plans keep, give back and refuse: bindings to memory that goes, persistent requests, freed executor."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from mpi4py import MPI

from topompi.mpi.execution import running
from topompi.mpi.execution.executor import Executor
from topompi.mpi.execution.groups import Groups
from topompi.mpi.execution.lru import LRU
from topompi.schedules import ALGORITHMS, Hierarchy, orders, ringsearch
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

WORLD = MPI.Intracomm(MPI.COMM_WORLD)
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


def new_executor(spec="xgft:2,2,2;1,1,1", places=(0, 2, 4, 6)):
    fabric = load(spec)
    hosts = [fabric.fabric.hosts[places[rank % len(places)]] for rank in range(SIZE)]
    interface = TopologyInterface.place(hosts, fabric.routes, virtual=True)
    groups = Groups(WORLD.Dup(), Hierarchy(WORLD.size, [level.cluster for level in interface.levels]))
    return Executor(groups, lambda: network_of(interface))


def memory_may_go_and_come_back(executor):
    """A binding holds no buffer, and is right for whatever stands at its address the next time."""
    for turn in range(300):
        send = np.full(SIZE * 3, 10 * turn + RANK, dtype="i4")
        receive = np.empty(SIZE * 3, dtype="i4")
        running.run(executor, "Alltoall", "shift", (send, receive))
        assert (receive.reshape(SIZE, 3) == 10 * turn + np.arange(SIZE)[:, None]).all(), (turn, receive)
        vector = np.full(4, RANK + turn, dtype="f8" if turn % 2 else "i8")
        running.run(executor, "Allreduce", "doubling", (MPI.IN_PLACE, vector, MPI.SUM))
        assert (vector == SIZE * turn + SIZE * (SIZE - 1) // 2).all(), (turn, vector)
        del send, receive, vector
    assert len(executor.bindings) <= 64


def counts_in_an_array_are_compared_by_value(executor):
    """The same arrays with other counts in them are another call."""
    send, receive = np.full(2 * SIZE, RANK, dtype="i4"), np.zeros(2 * SIZE, dtype="i4")
    counts = np.ones(SIZE, dtype=int)
    for many in (1, 2, 1):
        counts[:], receive[:] = many, -1
        running.run(executor, "Alltoallv", "shift", ([send, counts], [receive, counts]))
        assert (receive[: many * SIZE] == np.repeat(np.arange(SIZE), many)).all(), receive
        assert (receive[many * SIZE :] == -1).all(), receive


def what_is_costly_is_made_once_for_all_ranks():
    """Rank 0 makes it at the first call, although some ranks have nothing to send and hold other plans already."""
    executor, made = new_executor(), []
    known = ALGORITHMS["alltoall"]["even"]

    def counting(*arguments, **parameters):
        made.append(RANK)
        return known.generator(*arguments, **parameters)

    ALGORITHMS["alltoall"]["even"] = replace(known, generator=counting)
    try:
        counts = np.full(SIZE, RANK % 2)
        send, receive = np.full(SIZE, RANK, dtype="i4"), np.full(SIZE, -1, dtype="i4")
        sources = np.arange(SIZE) % 2
        for many in range(3):
            places = np.arange(SIZE)
            message = [receive, (sources, places), MPI.INT]
            assert running.run(executor, "Alltoallv", "even", ([send, (counts, places), MPI.INT], message)) == "even"
            assert (receive == np.where(sources, places, -1)).all(), receive
            block = np.full((SIZE, many + 1), RANK, dtype="i4")
            got = np.empty_like(block)
            assert running.run(executor, "Alltoall", "even", (block, got)) == "even"
            assert (got == places[:, None]).all(), got
        assert made == ([0] if RANK == 0 else []), made
    finally:
        ALGORITHMS["alltoall"]["even"] = known
    executor.free()


def what_rank_0_cannot_make_is_native_and_what_fails_there_fails_everywhere():
    known = ALGORITHMS["alltoall"]["even"]
    send, receive = np.full(SIZE, RANK, dtype="i4"), np.empty(SIZE, dtype="i4")
    for error in (ValueError("no such network"), RuntimeError("no memory")):
        executor = new_executor()

        def failing(*arguments, error=error, **parameters):
            raise error

        ALGORITHMS["alltoall"]["even"] = replace(known, generator=failing)
        try:
            if isinstance(error, ValueError):
                assert running.run(executor, "Alltoall", "even", (send, receive)) == "native"
                assert (receive == np.arange(SIZE)).all()
            else:
                with pytest.raises(RuntimeError, match="no memory"):
                    running.run(executor, "Alltoall", "even", (send, receive))
        finally:
            ALGORITHMS["alltoall"]["even"] = known
        executor.free()


def one_rank_searches_the_order_of_hosts_and_all_have_it():
    """The first ring or chain of a communicator; the order is not that of the switches, and every result is right."""
    executor, searched = new_executor("torus:8", (6, 1, 5, 3)), []
    search = ringsearch.search

    def counting(*arguments, **parameters):
        searched.append(RANK)
        return search(*arguments, **parameters)

    orders.search = counting
    try:
        for turn in range(2):
            vector = np.arange(8.0) + RANK + turn
            total = np.empty_like(vector)
            wanted = SIZE * (np.arange(8.0) + turn) + SIZE * (SIZE - 1) / 2
            assert running.run(executor, "Allreduce", "ring", (vector, total, MPI.SUM)) == "ring"
            assert (total == wanted).all(), total
            everyone = np.empty((SIZE, 8))
            assert running.run(executor, "Allgather", "ring", (vector, everyone)) == "ring"
            assert (everyone == np.arange(8.0) + np.arange(SIZE)[:, None] + turn).all(), everyone
            for root in range(SIZE):
                data = np.full(64, RANK + turn, dtype="i4")
                for name in ("chain", "scatter_allgather"):
                    assert running.run(executor, "Bcast", name, (data, root)) == name
                    assert (data == root + turn).all(), data
                assert running.run(executor, "Reduce", "chain", (vector, total, MPI.SUM, root)) == "chain"
                assert root != RANK or (total == wanted).all(), total
    finally:
        orders.search = search
    every = WORLD.allgather((executor.network.order.tolist(), searched))
    assert all(order == every[0][0] for order, _ in every), every
    assert all(not one for _, one in every[1:]), every
    if SIZE >= 4:  # on three hosts of this ring of switches the order of the switches is as good
        assert every[0] == ([0, 2, 3, 1], [0]), every
    executor.free()


def persistent_requests_keep_to_their_states(executor):
    data = np.zeros(8)
    request = running.prepare(executor, "Bcast", "chain", (data, 0))
    assert request.Wait()  # inactive
    assert request.Test()
    for turn in range(5):
        data[:] = turn if RANK == 0 else -1
        request.Start()
        if turn % 2:
            while not request.Test():
                pass
        else:
            request.Wait()
        assert (data == turn).all()
    request.Free()
    assert not request
    with pytest.raises(MPI.Exception) as refused:
        request.Start()
    assert refused.value.Get_error_class() == MPI.ERR_REQUEST


def started_collectives_leave_others_alone(executor):
    """Of two under way, and a call between them, each gets its own messages."""
    slow, other, now = np.zeros(8), np.zeros(8), np.zeros(8)
    requests = [running.prepare(executor, "Bcast", "chain", (data, 0)) for data in (slow, other)]
    for turn in range(3):
        for number, data in enumerate((slow, other, now)):
            data[:] = 10 * turn + number if RANK == 0 else -1
        for request in requests:
            request.Start()
        running.run(executor, "Bcast", "chain", (now, 0))
        for request in reversed(requests):
            request.Wait()
        assert [data.tolist() for data in (slow, other, now)] == [[10 * turn + number] * 8 for number in range(3)]
    for request in requests:
        request.Free()


def buffers_are_checked(executor):
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    for bad in (read_only, [np.zeros(2), 4, MPI.DOUBLE]):
        with pytest.raises((ValueError, BufferError)):
            running.run(executor, "Allreduce", "doubling", (np.ones(4), bad, MPI.SUM))


def what_is_kept_is_bounded():
    kept = LRU(3, 100)
    for key in range(5):
        kept.put(key, str(key), 10)
    assert [kept.get(key) for key in range(5)] == [None, None, "2", "3", "4"]
    kept.put("heavy", "", 26)
    assert kept.get("heavy") is None
    for key in "abcd":
        kept.put(key, key, 25)
    kept = LRU(10, 100)
    for key in range(6):
        kept.put(key, key, 20)
    assert [kept.get(key) for key in range(6)] == [None, 1, 2, 3, 4, 5]


def freed_executor_refuses(executor):
    executor.free()
    with pytest.raises(RuntimeError, match="freed"):
        running.run(executor, "Bcast", "binomial", (np.zeros(2), 0))


def many_executors_come_and_go():
    """What executor make for plans is given back with them."""
    for _ in range(40):
        executor = new_executor()
        running.run(executor, "Allreduce", "doubling", (np.ones(2), np.empty(2), MPI.SUM))
        executor.free()
        executor.groups.comm.Free()
        gc.collect(0)


def main():
    executor = new_executor()
    memory_may_go_and_come_back(executor)
    counts_in_an_array_are_compared_by_value(executor)
    what_is_costly_is_made_once_for_all_ranks()
    one_rank_searches_the_order_of_hosts_and_all_have_it()
    what_rank_0_cannot_make_is_native_and_what_fails_there_fails_everywhere()
    persistent_requests_keep_to_their_states(executor)
    started_collectives_leave_others_alone(executor)
    buffers_are_checked(executor)
    what_is_kept_is_bounded()
    freed_executor_refuses(executor)
    many_executors_come_and_go()
    WORLD.Barrier()
    if RANK == 0:
        print("all right", flush=True)


if __name__ == "__main__":
    main()
