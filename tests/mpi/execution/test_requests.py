"""Requests of plans: started and completed by functions of MPI, with errors, and one after the other."""

import gc
import os
import signal
import weakref

import numpy as np
import pytest
from mpi4py import MPI

from topompi.mpi.execution import aside
from topompi.mpi.execution.compiled import COMPILED
from topompi.mpi.execution.movable import Movables
from topompi.mpi.execution.program import Resumable
from topompi.mpi.execution.requests import PersistentRequest, PlanRequest, after
from topompi.mpi.execution.resumable import ResumableRun


class Steps:
    """A run of one step that waits until it is told to end."""

    def __init__(self, error=None, held=()):
        self.ready, self.error, self.made = False, error, 0
        self.run = ResumableRun([Resumable(self.begin, ()), Resumable(self.finish, (), self.test)], held, (None,))

    def begin(self):
        self.made += 1

    def finish(self):
        if self.error is not None:
            raise self.error

    def test(self):
        if self.ready:
            self.finish()
        return self.ready


class Held:
    """An object that counts how often it is freed."""

    freed = 0

    def free(self):
        self.freed += 1


def until(test):
    while not test():
        pass


COMPLETE = {
    "wait": lambda request: request.Wait(),
    "lower wait": lambda request: request.wait(),
    "test": lambda request: until(request.Test),
    "lower test": lambda request: until(lambda: request.test()[0]),
    "get_status": lambda request: [until(request.Get_status), request.Wait()],
    "waitall": lambda request: MPI.Request.Waitall([MPI.REQUEST_NULL, request]),
    "waitany": lambda request: MPI.Request.Waitany([request]),
    "waitsome": lambda request: MPI.Request.Waitsome([request]),
    "testall": lambda request: until(lambda: MPI.Request.Testall([request])),
    "handle": lambda request: MPI.Request.fromhandle(request.handle).Wait(),
}
START = {
    "start": lambda request: request.Start(),
    "startall": lambda request: MPI.Prequest.Startall([request]),
    "handle": lambda request: MPI.Prequest.f2py(request.py2f()).Start(),
}


@pytest.mark.parametrize("how", [one for one in COMPLETE if one != "handle"])
def test_a_request_is_completed_by_every_function_and_its_plan_runs_again(how):
    steps = Steps()
    for time in (1, 2):
        request = PlanRequest.of(steps.run, object())
        assert type(request).__mro__.index(MPI.Request)
        assert not request.ended
        steps.ready = True
        COMPLETE[how](request)
        assert request.ended
        assert request == MPI.REQUEST_NULL
        assert steps.made == time
        steps.ready = False
    with pytest.raises(MPI.Exception):  # an active plan cannot be started
        _ = [PlanRequest.of(steps.run, None), PlanRequest.of(steps.run, None)]
    steps.ready = True


@pytest.mark.parametrize("start", START)
@pytest.mark.parametrize("how", COMPLETE)
def test_a_persistent_request_is_started_and_completed_by_every_function(start, how):
    steps = Steps()
    request = PersistentRequest.of(steps.run)
    assert isinstance(request, MPI.Prequest)
    assert request
    for time in (1, 2):
        assert request.Test()  # as every request that is not started
        START[start](request)
        assert not request.Test()
        assert not request.Get_status()
        steps.ready = True
        COMPLETE[how](request)
        assert steps.made == time
        assert request != MPI.REQUEST_NULL
        steps.ready = False
    request.Free()
    assert request == MPI.REQUEST_NULL
    assert not request
    assert request.Wait()


def test_a_persistent_request_refuses_as_the_library_s_own():
    steps, held = Steps(), Held()
    steps.run = ResumableRun([Resumable(steps.begin, ()), Resumable(steps.finish, (), steps.test)], [held], (None,))
    request = PersistentRequest.of(steps.run)
    request.Start()
    for refused in (request.Start, request.Free, request.Cancel):
        with pytest.raises(MPI.Exception):
            refused()
    steps.ready = True
    request.Wait()
    assert held.freed == 0
    request.Free()
    assert held.freed == 1
    for refused in (request.Start, request.Free, lambda: MPI.Prequest.Startall([request])):
        with pytest.raises(MPI.Exception):
            refused()


@pytest.mark.parametrize(
    ("how", "kind"), [(how, kind) for how in ("wait", "test", "waitall") for kind in ("one run", "many runs")][:-1]
)
def test_an_error_is_raised_where_the_request_is_completed(how, kind):
    steps = Steps(MPI.Exception(MPI.ERR_RANK))
    if kind == "many runs":
        request = PersistentRequest.of(steps.run)
        request.Start()
    else:
        request = PlanRequest.of(steps.run, None)
    steps.ready = True
    with pytest.raises(MPI.Exception) as caught:
        COMPLETE[how](request)
    assert how == "waitall" or caught.value is steps.error  # Waitall raises an error of its own
    assert not steps.run.active
    if kind == "many runs":
        steps.error = None
        request.Start()
        request.Wait()
        request.Free()


def test_an_error_that_waitall_does_not_see_is_raised_by_the_next_wait():
    steps = Steps(MPI.Exception(MPI.ERR_RANK))
    request = PersistentRequest.of(steps.run)
    request.Start()
    steps.ready = True
    MPI.Request.Waitall([request])
    with pytest.raises(MPI.Exception):
        request.Wait()
    request.Free()


def test_a_first_message_that_fails_fails_the_request_and_not_the_start():
    later = Steps()
    later.ready = True
    calls = [Resumable(int, ("x",)), Resumable(later.begin, ()), Resumable(later.finish, (), later.test)]
    request = PersistentRequest.of(ResumableRun(calls, [], (None,)))
    request.Start()
    assert later.made == 1  # because other ranks wait for the later messages
    with pytest.raises(ValueError, match="'x'"):
        request.Wait()


def test_a_request_that_is_dropped_ends_and_keeps_nothing_alive():
    steps, kept = Steps(), Held()
    request = PersistentRequest.of(ResumableRun([Resumable(steps.begin, (), steps.test)], [], (kept,)))
    gone = weakref.ref(kept)
    request.Start()
    del request, kept
    assert gone() is not None
    steps.ready = True
    until(lambda: gc.collect() is None or gone() is None)


def test_a_plan_after_another_begins_when_that_has_ended():
    first, second = Steps(), Steps()
    earlier = PlanRequest.of(first.run, None)
    calls = [after(earlier), Resumable(second.begin, ()), Resumable(second.finish, (), second.test)]
    later = PlanRequest.of(ResumableRun(calls, [], ()), None)
    second.ready = True
    assert not later.Test()
    assert second.made == 0
    first.ready = True
    later.Wait()
    assert (first.made, second.made) == (1, 1)
    earlier.Wait()


def test_a_plan_of_one_run_that_holds_requests_is_freed_at_its_end():
    held = Held()
    request = PlanRequest.of(ResumableRun([Resumable(lambda: None, (), lambda: True)], [held], ()), None)
    request.Wait()
    assert held.freed == 1


def test_the_thread_sleeps_and_wakes():
    """Also a request that comes when the thread has just gone to sleep is completed by it."""
    thread = aside.aside
    for kind in (PlanRequest, PersistentRequest, PlanRequest):
        steps = Steps()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(aside, "LINGER", 0)
            if kind is PlanRequest:
                request = PlanRequest.of(steps.run, None)
            else:
                request = PersistentRequest.of(steps.run)
                MPI.Prequest.Startall([request])
            steps.ready = True
            MPI.Request.Waitall([request])
            until(lambda: not thread._needed.is_set())
    assert thread._runs.is_alive()


def test_a_forked_process_ends_though_the_thread_of_its_parent_held_a_lock():
    request = PersistentRequest.of(Steps().run)
    child = os.fork()
    if child == 0:
        aside.aside._needed._cond.acquire()
        signal.alarm(5)
        try:
            aside.aside._stop()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    request.Free()


class Copying:
    """Stands for a program that copies the first array to the second."""

    def __init__(self):
        self.moved = []

    def relocate(self, begins, lengths, to):
        self.moved.append((begins, lengths, to))


@pytest.mark.skipif(not COMPILED, reason="topompi was installed without a C compiler")
def test_a_movable_program_is_found_by_all_but_addresses():
    memory, counts = np.zeros(64, np.uint8), np.array([3, 5])
    places = [memory[at : at + 8] for at in range(0, 64, 8)]
    start = memory.__array_interface__["data"][0]
    found, program = Movables(2), Copying()
    assert found.put("a", ([places[0], counts], places[1]), program, None) is not None
    assert found.get("a", ([places[0], counts.copy()], places[1])).program is program
    assert not program.moved
    assert found.get("a", ([places[4], counts], places[2])).program is program
    assert program.moved == [((start, start + 8), (8, 8), (start + 32, start + 16))]
    for other in (
        ("b", ([places[4], counts], places[2])),
        ("a", ([places[4], counts + 1], places[2])),
        ("a", ([places[4], counts], memory[:9])),
        ("a", ([places[4], counts], memory[36:44])),  # they overlap
        ("a", ([places[4], counts], [places[2], object()])),
    ):
        assert found.get(*other) is None
    assert found.put("a", (memory[:8], memory[4:12]), program, None) is None
    assert found.put("a", (memory[:8], [memory[8:], object()]), program, None) is None
    assert found.put("a", (memory[:8], 3), program, None) is None
