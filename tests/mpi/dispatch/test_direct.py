"""Direct calls: only a call identical to an earlier one reaches the MPI library or a plan without Python."""

import gc
import inspect
import pydoc
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi4py import MPI

from tests.support import ROOT, run_mpi
from topompi.mpi.dispatch.calls import COMPILED, Calls
from topompi.mpi.execution.specs import CALLS, Form

compiled = pytest.mark.skipif(not COMPILED, reason="topompi was installed without a C compiler")

NAMES = ("Bcast", "Reduce", "Scatter", "Allreduce", "Gatherv")
OPS = (MPI.SUM, MPI.MAX, MPI.MIN)
DEFAULTS = {"root": 0, "op": MPI.SUM}


class Handle:
    """As a communicator: it says who ran a call, and with what."""

    __slots__ = ("__weakref__", "calls")


class Derived(Handle):
    """One more kind."""


def native(*args, **kwargs):
    """As the MPI library's method."""
    return "native", args, kwargs


planned = []


def plan(*args):
    """As what runs a plan; the call returns None all the same."""
    planned.append(("plan", args, {}))
    return "ring"


def made(name):
    """A method as of a communicator; all ways return who ran and with what."""
    from topompi.mpi.dispatch._calls import Method

    def function(*args, **kwargs):
        return "python", args, kwargs

    spec = CALLS[name]
    parameters = spec.parameters
    root, op = (parameters.index(one) if one in parameters else -1 for one in ("root", "op"))
    message = -1 if spec.sized_by is None else spec.sized_by
    defaults = tuple(DEFAULTS[one] for one in parameters if one in DEFAULTS)
    return Method(function, native, Handle.calls, spec.number, parameters, defaults, message, root, op)


KEYS = st.tuples(
    st.sampled_from([name for name in NAMES if CALLS[name].sized_by is not None]),
    st.sampled_from([0, 1, 15, 1 << 20]),
    st.integers(0, 2),
)
OTHER_ROOTS = (-1, 1 << 31, (1 << 32) + 1, 1 << 70, True, np.int64(1), None, "0")  # of some C makes one that is known


def plain_and_other_messages(nbytes):
    """Messages whose size is told without the method in Python, and those that are none of them."""
    array = np.zeros(nbytes, np.uint8)
    plain = [array, bytes(nbytes), bytearray(nbytes), memoryview(array), np.zeros((2, nbytes), np.uint8)[0]]
    gaps = np.zeros(2 * nbytes + 2, np.uint8)[::2][:nbytes]
    return plain, [[array, nbytes], MPI.IN_PLACE, None, gaps]


@compiled
@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(KEYS, st.integers(2, 70), st.sampled_from([native, plan])), min_size=1, max_size=30), st.data()
)
def test_just_the_calls_that_are_known_are_run_as_was_said(calls, data):
    """In whatever form their arguments have: they reach the library as they were given, a plan in order, with defaults.

    With one of them changed they are another call.
    """
    handle, known = Derived(), {}
    handle.calls = Calls()
    for (name, root, op), nbytes, run in calls:
        spec = CALLS[name]
        key = name, root if spec.rooted else 0, op if spec.reduces else None, nbytes
        handle.calls.add(spec.number, key[1], None if key[2] is None else OPS[op], nbytes, run)
        known[key] = run
    assert len(handle.calls) == len(known)
    name, root, op, nbytes = data.draw(st.sampled_from(sorted(known, key=repr)))
    spec = CALLS[name]
    parameters, sized = spec.parameters, spec.parameters[spec.sized_by]
    plain, others = plain_and_other_messages(nbytes)
    fine = {one: object() for one in parameters}
    fine |= {sized: plain[data.draw(st.integers(0, len(plain) - 1))]}
    fine |= {one: value for one, value in (("root", root), ("op", OPS[op or 0])) if one in parameters}

    def ran(arguments):
        ordered = [(one, arguments[one]) for one in parameters]
        positional = data.draw(st.integers(0, len(ordered)))
        args = tuple(value for _, value in ordered[:positional])
        named = dict(data.draw(st.permutations(ordered[positional:])))
        for one, default in DEFAULTS.items():
            if named.get(one) is default:
                del named[one]  # left to its default
        who, got, got_named = made(name)(handle, *args, **named) or planned.pop()
        whole = [arguments[one] for one in parameters]
        assert all(one is other for one, other in zip(got, (handle, *(whole if who == "plan" else args)), strict=True))
        assert got_named == ({} if who == "plan" else named)
        return who

    def expected(key):
        return known[key].__name__ if key in known else "python"

    assert ran(fine) == known[name, root, op, nbytes].__name__
    for other in others:
        assert ran(fine | {sized: other}) == "python"
    # Times are no MPI type, but say how many bytes they have; whoever runs the call refuses them.
    assert ran(fine | {sized: np.zeros(nbytes, "M8[s]")}) == expected((name, root, op, 8 * nbytes))
    longer = nbytes + data.draw(st.integers(1, 3))
    assert ran(fine | {sized: bytes(longer)}) == expected((name, root, op, longer))
    for other in OTHER_ROOTS if spec.rooted else ():
        assert ran(fine | {"root": other}) == "python"
    for number_of_other, other in enumerate(OPS if spec.reduces else ()):
        assert ran(fine | {"op": other}) == expected((name, root, number_of_other, nbytes))


@compiled
def test_all_calls_are_passed_on_where_nothing_is_to_be_chosen():
    handle, call = Handle(), made("Gatherv")
    assert call(handle)[0] == "python"  # nothing is in the slot
    handle.calls = Calls()
    assert call(handle)[0] == "python"
    handle.calls.all = True
    assert call(handle, 1, other=2) == ("native", (handle, 1), {"other": 2})
    handle.calls.clear()
    assert not handle.calls.all
    assert call(handle)[0] == "python"


@compiled
def test_other_objects_and_arguments_are_not_looked_into():
    call = made("Bcast")
    handle = Derived()
    handle.calls = Calls()
    handle.calls.all = True
    assert call(handle)[0] == "native"
    for other in (object(), 5, MPI.COMM_SELF, type("Handle", (), {"calls": handle.calls})()):
        assert call(other)[0] == "native"  # mpi4py says what is wrong with it, if anything is
    assert call() == ("native", (), {})
    handle.calls.all = False
    handle.calls.add(CALLS["Bcast"].number, 0, None, 8, native)
    assert call(handle, bytes(8), root=0)[0] == "native"
    for twice_or_unknown in ({"buf": bytes(8)}, {"wrong": 0}):
        assert call(handle, bytes(8), **twice_or_unknown)[0] == "python"
    assert call(handle, bytes(8), 0, 0)[0] == "python"
    handle.calls = "something else"
    assert call(handle)[0] == "python"


@compiled
def test_what_is_always_the_librarys_is_passed_where_that_is_said():
    from topompi.mpi.dispatch._calls import Method

    call = Method(lambda *args: ("python", args, {}), native, Handle.calls, 0, (), (), -1, -1, -1)
    handle = Handle()
    handle.calls = Calls()
    assert call(handle)[0] == "python"
    handle.calls.passes = True
    assert call(handle, 1)[0] == "native"
    assert made("Bcast")(handle, bytes(8))[0] == "python"
    handle.calls.clear()
    assert call(handle)[0] == "python"


@compiled
def test_calls_grow_to_a_limit_and_are_then_forgotten():
    handle, call, number = Handle(), made("Bcast"), CALLS["Bcast"].number
    handle.calls = calls = Calls()
    for nbytes in range(1, 3001):
        for _ in range(2):
            calls.add(number, nbytes % 7, None, nbytes, native)
        assert call(handle, bytes(nbytes), nbytes % 7)[0] == "native"
        assert len(calls) <= 1024
    assert len(calls) > 900
    calls.clear()
    assert len(calls) == 0
    assert call(handle, bytes(3000), 3000 % 7)[0] == "python"


@compiled
def test_what_runs_a_call_is_held_until_it_is_forgotten():
    class Run:
        def __call__(self, *args):
            handle.calls.clear()  # as where a call ends a trial, or frees the communicator
            plan(*args)

    handle, run = Handle(), Run()
    handle.calls = Calls()
    gone = weakref.ref(run)
    handle.calls.add(CALLS["Bcast"].number, 0, None, 8, run)
    handle.calls.add(CALLS["Bcast"].number, 0, None, 8, run)
    del run
    assert made("Bcast")(handle, bytes(8)) is None
    assert planned.pop()[0] == "plan"
    assert gone() is None


@compiled
def test_a_method_tells_of_itself_what_the_one_in_python_does():
    import topompi

    for name in ("Bcast", "Reduce_scatter", "Gatherv", "Barrier"):
        method = getattr(topompi.Intracomm, name)
        function = method.__wrapped__
        assert inspect.isfunction(function)
        assert (method.__doc__, method.__name__, method.__qualname__, method.__module__) == (
            function.__doc__,
            name,
            function.__qualname__,
            "topompi.mpi.communicator.collectives",
        )
        assert inspect.signature(method) == inspect.signature(function)
    assert "Broadcast data" in pydoc.render_doc(topompi.Intracomm)


@compiled
def test_what_makes_no_sense_is_refused():
    from topompi.mpi.dispatch._calls import Method

    def function(handle, one, two):
        return None

    for wrong in (
        {"number": -1},
        {"message": 2},
        {"defaults": (1, 2, 3)},
        {"root": -2},
        {"op": 5},
        {"parameters": tuple("abcde")},
    ):
        fine = {"number": 1, "parameters": ("one", "two"), "message": 0, "root": 1, "op": -1, "defaults": ()}
        with pytest.raises(ValueError, match="expecting a slot"):
            Method(function, function, Handle.calls, **{**fine, **wrong})
    with pytest.raises(TypeError):
        Method(function, function, property(), **fine)
    with pytest.raises(TypeError, match="names"):
        Method(function, function, Handle.calls, **{**fine, "parameters": ("one", 2)})
    with pytest.raises(ValueError, match="got 0"):
        Calls().add(0, 0, None, 8, native)


@compiled
def test_no_handle_or_array_is_held():
    handle, array, call = Handle(), np.zeros(8), made("Bcast")
    handle.calls = Calls()
    handle.calls.add(CALLS["Bcast"].number, 0, None, 64, native)
    before = sys.getrefcount(array), sys.getrefcount(handle)
    assert call(handle, array, root=0)[0] == "native"
    assert call(handle, array[::2])[0] == "python"
    assert (sys.getrefcount(array), sys.getrefcount(handle)) == before
    gone = weakref.ref(handle)
    del handle
    gc.collect()
    assert gone() is None


TABLED = sum(spec.sized_by is not None or spec.form is Form.NOTHING for spec in CALLS.values())

TRACED = """
import sys
import numpy as np
from mpi4py import MPI
import topompi
from topompi.mpi.communicator.handle import calls_of
from topompi.mpi.communicator.state import state_of
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0004"])
one, all_ = np.ones(4), np.ones((2, 4))
calls = {
    "Bcast": lambda: comm.Bcast(one, root=1),
    "Gather": lambda: comm.Gather(one, all_),
    "Scatter": lambda: comm.Scatter(all_, one, 1),
    "Allgather": lambda: comm.Allgather(one, all_),
    "Alltoall": lambda: comm.Alltoall(all_, all_.copy()),
    "Reduce": lambda: comm.Reduce(one, one.copy(), MPI.MAX),
    "Allreduce": lambda: comm.Allreduce(one, one.copy(), op=MPI.MAX),
    "Scan": lambda: comm.Scan(one, one.copy()),
    "Exscan": lambda: comm.Exscan(one, one.copy()),
    "Reduce_scatter": lambda: comm.Reduce_scatter(all_, one, [4, 4]),
    "Reduce_scatter_block": lambda: comm.Reduce_scatter_block(all_, one),
    "Barrier": lambda: comm.Barrier(),
}
ran = []
for name, call in calls.items():
    call()
    sys.setprofile(lambda frame, event, _: event == "call" and ran.append(frame.f_code.co_qualname))
    call()
    sys.setprofile(None)
ran = [name for name in ran if name != "<lambda>" and not name.endswith(".<lambda>")]
print("ran in Python:", ran)
checking = topompi.Intracomm(comm)
known = lambda calls: len(calls) + (len(calls.others) if calls.others else 0)
print("calls known:", known(state_of(comm).calls), "looks:", known(calls_of(comm)), known(calls_of(checking)))
comm.free()
try:
    calls["Bcast"]()
except RuntimeError as error:
    print(error)
"""


def left_to_the_library(tmp_path, first="", **environment):
    rules = tmp_path / "rules.json"
    rules.write_text(f'{{"format": "topompi rules", "version": 1, "rules": [{first}{{"algorithm": "native"}}]}}')
    done = run_mpi(2, "-m", "mpi4py", "-c", TRACED, env={"TOPOMPI_RULES": str(rules), **environment})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@compiled
def test_what_rules_leave_to_the_library_runs_nothing_of_ours(tmp_path):
    said = left_to_the_library(tmp_path)
    assert said.count("ran in Python: []") == 2, said
    assert said.count(f"calls known: {TABLED} looks: {TABLED} {TABLED}") == 2, said
    assert said.count("communicator already freed") == 2, said


@compiled
def test_what_rules_leave_to_topompi_is_not_passed_on(tmp_path):
    said = left_to_the_library(tmp_path, '{"methods": ["Allreduce"], "algorithm": "doubling"}, ')
    assert re.search(r"ran in Python: \[.*'run', ", said), said
    assert "Collectives.Allreduce" not in said
    assert "'Collectives.Bcast'" not in said
    assert said.count(f"calls known: {TABLED} looks") == 2, said


def test_where_calls_are_checked_or_counted_they_all_come_to_python(tmp_path):
    for name in ("TOPOMPI_CHECK", "TOPOMPI_VERBOSE"):
        said = left_to_the_library(tmp_path, **{name: "1"})
        assert "ran in Python: ['Collectives.Bcast'" in said
        assert len(re.findall(r"'Collectives\.[A-Z]\w+'", said)) == 2 * TABLED
        assert said.count("looks: 0 0") == 2, said


ASKED = """
import numpy as np
from mpi4py import MPI
import topompi
from topompi.mpi.selection.policy import Policy
asked, choice = [], Policy.choice
Policy.choice = lambda self, key, *more: asked.append(key) or choice(self, key, *more)
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2,2;1,1,1", hosts=["h0000", "h0004"])
for _ in range(3):
    made = comm.Dup()
    for _ in range(9):
        made.Bcast(np.ones(1))
    print("ran", topompi.choice_of(made, "Bcast", 8).algorithm)
    made.Free()
print("rules asked for", [key[0] for key in asked])
"""


def test_rules_are_asked_once_for_all_communicators_over_the_same_ranks(tmp_path):
    rules = tmp_path / "rules.json"
    chosen = '{"methods": ["Bcast"], "algorithm": "binomial"}'
    rules.write_text(f'{{"format": "topompi rules", "version": 1, "rules": [{chosen}]}}')
    done = run_mpi(2, "-m", "mpi4py", "-c", ASKED, env={"TOPOMPI_RULES": str(rules)})
    assert done.stdout.count("ran binomial") == 6, done.stderr[-2000:]
    assert done.stdout.count("rules asked for ['Bcast']\n") == 2, done.stdout


WITHOUT = """
import inspect, os, runpy, sys
for one in ("dispatch._calls", "execution._compiled", "execution._keys"):
    sys.modules[f"topompi.mpi.{one}"] = None  # as where they were not compiled
import topompi.mpi.dispatch, topompi.mpi.execution.compiled, topompi.mpi.execution.keys
assert not topompi.mpi.dispatch.COMPILED
assert not topompi.mpi.execution.compiled.COMPILED
assert topompi.mpi.execution.keys.packed((), {}) is None
assert inspect.isfunction(topompi.Intracomm.Bcast)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


KEEPING = """
import sys
sys.modules["topompi.mpi.dispatch._calls"] = None
from topompi.mpi.dispatch.calls import MOST, Calls
mine, early, always = Calls(), Calls(), Calls()
mine.others, early.others, early.until = early, always, 2
early.add(1, 0, None, 8, "early")
for nbytes in range(2 * MOST):
    always.runs[1, 0, 0, nbytes] = "always"
assert [mine.find((1, 0, 0, 8), made) for made in (1, 2)] == ["early"] * 2 and len(mine) == 0
for nbytes in range(2 * MOST):
    assert mine.find((1, 0, 0, nbytes), 3) == "always"
assert len(mine) == MOST
assert mine.find((2, 0, 0, 8), 3) is None
"""


def test_without_a_compiler_a_call_that_another_table_always_knows_is_kept_up_to_a_limit():
    subprocess.run([sys.executable, "-c", KEEPING], check=True, timeout=60)


@pytest.mark.long
def test_all_works_without_a_compiler(tmp_path):
    script = tmp_path / "without.py"
    script.write_text(WITHOUT)
    program = ROOT / "tests" / "programs" / "matrix.py"
    done = run_mpi(2, "-m", "mpi4py", script, program, "--sparse", "2", timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "\n0 of " in done.stdout
    assert ", 0 failures" in done.stdout
