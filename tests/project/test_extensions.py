"""The extensions in C: they refuse arrays of wrong types, and can be interrupted with Ctrl-C."""

import contextlib
import signal
import time

import numpy as np
import pytest

from tests.netsim.test_netsim import one_switch, program
from tests.netsim.test_packets import network
from topompi.mapping.distances import Axes
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.mappers import cooling
from topompi.netsim import BACKGROUND, COMPUTE, Hosts, Program, flows, packets
from topompi.netsim.packets import running
from topompi.netsim.packets.arrays import ProgramArrays, link_arrays, numbers
from topompi.netsim.tape import Tape

if None in (cooling._compiled, flows._compiled, running.Engine):
    pytest.skip("topompi was installed without a C compiler", allow_module_level=True)


class AlarmError(Exception):
    """The exception that the signal's handler raises."""


@contextlib.contextmanager
def alarm(seconds):
    """A signal after some time, which has to end what runs within three seconds."""

    def ring(*_):
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    began = time.perf_counter()
    try:
        with pytest.raises(AlarmError):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - began < seconds + 3


def endless():
    """A message again and again while another job computes for ten days."""
    none = np.zeros(1, dtype=np.int64)
    clock = Program(none, none, none, none + COMPUTE, none, np.array([864e3]), name="clock")
    return [program(2, (0, 0, 1, 1e3), repeat=BACKGROUND), clock]


def flow():
    return flows.run(one_switch(2), endless())


def send_packets():
    return packets.run(network([2]), endless(), hosts=Hosts(eager=1e9))


def anneal(steps=4 * 10**6):
    search, place = search_of(64)
    return search.run(place, np.ones(steps), 0)


def search_of(ranks):
    """Annealing of a ring of ranks on a line of places."""
    every = np.arange(ranks)
    graph = CommunicationGraph.from_arrays(ranks, every, (every + 1) % ranks, np.ones(ranks, dtype=np.int64))
    far = np.abs(every[:, None] - every).astype(np.float64)
    return cooling._Search.of(graph.undirected(), Axes(far, every[:, None])), every


@pytest.mark.parametrize("work", [flow, send_packets, anneal])
def test_a_signal_ends_a_long_run_in_c(work):
    with alarm(0.1):
        work()


def annealing_arrays():
    search, place = search_of(8)
    graph = [search.offsets, search.targets, search.weight, search.far, search.column, search.near]
    first, at = np.arange(9, dtype=np.int32), place.astype(np.int32)
    return [*graph, first, search.movable, at.copy(), at.copy(), at, np.ones(3), np.empty(3)]


def job():
    return program(2, (0, 0, 1, 1e3), (1, 1, 0, 1e3), named={"there": 0, "back": 1})


def flow_arrays():
    return [one.copy() for one in Tape.of(one_switch(2), [job(), job()], np.inf).arrays(np.zeros(4))]


def add_flows(arrays):
    flows._compiled(np.ones(4), 1.0, 0.0, 0.0, 0.0, 0.0).add(tuple(arrays))


def packet_jobs():
    return ProgramArrays.of(network([2]), [job(), job()], 1, np.zeros(2), np.zeros(4)).columns


def add_packets(arrays):
    tables, about = network([2]), packets.Settings()
    engine = running.Engine(link_arrays(tables, about), numbers(about, Hosts()))
    engine.add(dict(zip(packet_jobs(), arrays, strict=True)))


def packet_arrays():
    return [one.copy() for one in packet_jobs().values()]


CALLS = {
    "flows": (add_flows, flow_arrays),
    "packets": (add_packets, packet_arrays),
    "annealing": (lambda arrays: cooling._compiled(*arrays, 0, False), annealing_arrays),
}
# Ranks with edges; named steps.
ANY_LENGTH = {
    "annealing": [7],
    "flows": [23],
    "packets": [list(packet_jobs()).index("mark_size")],
}
SPARED = ["foreign byte order"]  # one byte has no order
WRONG = {
    "another type": (lambda one: one.astype(np.int16), TypeError, "expecting items of type"),
    "foreign byte order": (lambda one: one.astype(one.dtype.newbyteorder()), TypeError, "expecting items of type"),
    "another length": (lambda one: np.concatenate((one, one, one)), ValueError, "expecting .* got"),
    "more dimensions": (lambda one: one[None], ValueError, r"expecting . dimension\(s\), got"),
    "gaps": (lambda one: np.repeat(one, 2, axis=-1)[..., ::2], ValueError, "expecting .* that lies together in memory"),
    "no array": (lambda one: one.tolist(), TypeError, "expecting an array, got list"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", WRONG)
def test_every_array_of_another_kind_is_refused_before_it_is_read(name, wrong):
    call, arrays = CALLS[name]
    spoil, error, message = WRONG[wrong]
    call(arrays())
    for at in range(len(arrays())):
        given = arrays()
        if (wrong == "another length" and at in ANY_LENGTH[name]) or (wrong in SPARED and given[at].itemsize == 1):
            continue
        given[at] = spoil(given[at])
        with pytest.raises(error, match=message):
            call(given)


FILLED = {"annealing": [8, 9, 10, 12], "flows": [], "packets": []}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_are_filled_have_to_be_writable_and_others_need_not(name):
    call, arrays = CALLS[name]
    for at in range(len(arrays())):
        given = arrays()
        given[at].setflags(write=False)
        refused = pytest.raises(ValueError, match="expecting a writable array")
        with refused if at in FILLED[name] else contextlib.nullcontext():
            call(given)
