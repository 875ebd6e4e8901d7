"""Requests of non-blocking plans: completed by functions of MPI, with errors, and one after the other."""

import numpy as np
import pytest
from mpi4py import MPI

from topompi.execution import aside
from topompi.execution.aside import PlanRequest, after
from topompi.execution.compiled import COMPILED
from topompi.execution.movable import Movables
from topompi.execution.persistent import PersistentPlan
from topompi.execution.program import Resumable


class Steps:
    """A plan of one step that waits until it is told to end."""

    def __init__(self, error=None):
        self.ready, self.error, self.made = False, error, 0
        self.plan = PersistentPlan([Resumable(self.begin, ()), Resumable(self.finish, (), self.test)], [], (None,))

    def begin(self):
        self.made += 1

    def finish(self):
        if self.error is not None:
            raise self.error

    def test(self):
        if self.ready:
            self.finish()
        return self.ready


def completed(how, request):
    {
        "wait": request.Wait,
        "test": lambda: [None for _ in iter(request.Test, True)],
        "waitall": lambda: MPI.Request.Waitall([MPI.REQUEST_NULL, request]),
        "waitany": lambda: MPI.Request.Waitany([request]),
    }[how]()


@pytest.mark.parametrize("how", ["wait", "test", "waitall", "waitany"])
def test_a_request_is_completed_by_every_function_and_its_plan_runs_again(how):
    steps = Steps()
    for time in (1, 2):
        kept = object()
        request = PlanRequest.of(steps.plan, kept)
        assert isinstance(request, MPI.Request)
        assert not request.ended
        steps.ready = True
        completed(how, request)
        assert request.ended
        assert request == MPI.REQUEST_NULL
        assert steps.made == time
        steps.ready = False
    with pytest.raises(MPI.Exception):  # an active plan cannot be started
        _ = [PlanRequest.of(steps.plan, None), PlanRequest.of(steps.plan, None)]
    steps.ready = True


@pytest.mark.parametrize("how", ["wait", "test", "waitall"])
def test_an_error_is_raised_where_the_request_is_completed(how):
    steps = Steps(MPI.Exception(MPI.ERR_RANK))
    request = PlanRequest.of(steps.plan, None)
    steps.ready = True
    with pytest.raises(MPI.Exception) as caught:
        completed(how, request)
    assert how == "waitall" or caught.value is steps.error  # Waitall raises an error of its own
    assert request.ended
    assert request == MPI.REQUEST_NULL or how == "waitall"


def test_a_plan_after_another_begins_when_that_has_ended():
    first, second = Steps(), Steps()
    earlier = PlanRequest.of(first.plan, None)
    later = PlanRequest.of(
        PersistentPlan(
            [after(earlier), Resumable(second.begin, ()), Resumable(second.finish, (), second.test)], [], ()
        ),
        None,
    )
    second.ready = True
    assert not later.Test()
    assert second.made == 0
    first.ready = True
    later.Wait()
    assert (first.made, second.made) == (1, 1)
    earlier.Wait()


def test_a_plan_that_holds_requests_is_freed_at_its_end():
    freed = []

    class Held:
        def free(self):
            freed.append(self)

    held = Held()
    request = PlanRequest.of(PersistentPlan([Resumable(lambda: None, (), lambda: True)], [held], ()), None)
    request.Wait()
    assert freed == [held]


def test_the_thread_sleeps_and_wakes():
    """Also a request that comes when the thread has just gone to sleep is completed by it."""
    for _ in range(3):
        steps = Steps()
        request = PlanRequest.of(steps.plan, None)
        steps.ready = True
        MPI.Request.Waitall([request])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(aside, "LINGER", 0)
            while aside._thread._needed.is_set():
                pass
    assert aside._thread._runs.is_alive()


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
