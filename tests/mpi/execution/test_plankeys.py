"""Keys of a call's arguments: equal for equal calls, different for different calls, in C as in Python."""

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from topompi.mpi.execution import keys as plankeys
from topompi.mpi.execution.keys import quick_key

try:
    from topompi.mpi.execution._keys import packed, placed
except ImportError:
    packed = placed = None

compiled = pytest.mark.skipif(packed is None, reason="topompi was installed without a C compiler")

BASE = np.zeros(64, np.uint8)
READ_ONLY = BASE[:]
READ_ONLY.flags.writeable = False


def of_array(array):
    """What tells one array from another, read without a buffer."""
    return array.__array_interface__["data"][0], array.nbytes, array.dtype.char


# Arguments, each with what tells it from others.
ARRAYS = [
    *(BASE, BASE[:32], BASE[32:], BASE[:8], BASE.reshape(8, 8), BASE.view("i4"), BASE[:8].view("f8"), BASE.view("?")),
    *(BASE.view(code) for code in "bhHIlLqQefdFDgG"),
    np.zeros((), "i4"),
]
COUNTS = np.array([3, 5])
MESSAGES = [  # memory by its place, all that follows by what it is
    ((BASE, 3), (of_array(BASE), 3)),
    *((kind((BASE, values)), (of_array(BASE), (3, 5))) for kind in (list, tuple) for values in ([3, 5], (3, 5))),
    *(((BASE, one), (of_array(BASE), one.dtype.str, one.tobytes())) for one in (COUNTS, COUNTS[::-1].copy())),
    ([BASE, COUNTS.astype("i4")], (of_array(BASE), "<i4", COUNTS.astype("i4").tobytes())),
    ([BASE, (COUNTS.copy(), None), MPI.INT], (of_array(BASE), (COUNTS.tobytes(), None), "INT")),
    ([BASE, (None, COUNTS), MPI.INT], (of_array(BASE), (None, COUNTS.tobytes()), "INT")),
    ([BASE, [COUNTS, None, MPI.INT]], (of_array(BASE), (COUNTS.tobytes(), None, "INT"))),
    ([BASE[8:], 3], (of_array(BASE[8:]), 3)),
    ([BASE, 3, 5], (of_array(BASE), 3, 5)),
    ([BASE, [[3], 5]], (of_array(BASE), ((3,), 5))),
    ([BASE, [[3, 5]]], (of_array(BASE), ((3, 5),))),
    *(((), ()), ([], ())),
]
KNOWN = [
    *((array, of_array(array)) for array in ARRAYS),
    *MESSAGES,
    *((number, number) for number in (0, 1, -1, 7, 1 << 40, BASE.__array_interface__["data"][0], id(MPI.SUM))),
    *((one, ("constant", id(one))) for one in (None, MPI.IN_PLACE, MPI.SUM, MPI.MAX, MPI.INT, MPI.BYTE)),
]
UNKNOWN = [  # among them numbers that MPI takes as well: their calls are read
    *(BASE[::2], BASE.view(">i4"), READ_ONLY, BASE.view(np.recarray)),
    *([READ_ONLY, 3], [BASE, object()], [BASE, np.zeros(1000, "i4")], [BASE, [True]], [BASE[::2], 3]),
    *(True, np.int64(1), 1.0, "0", MPI.INT.Create_contiguous(2).Commit(), object()),
]


def without_compiler(arguments, lasting):
    """As ``packed`` where it was not compiled."""


@pytest.fixture(scope="module", params=[pytest.param("compiled", marks=compiled), "in Python"])
def way(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in Python":
            patch.setattr(plankeys, "packed", without_compiler)
        yield request.param


def test_keys_are_equal_where_the_arguments_are(way):
    keys = [quick_key("Bcast", "binomial", (one,)) for one, _ in KNOWN]
    assert None not in keys
    for (key, (_, told)), (other, (_, other_told)) in product(zip(keys, KNOWN, strict=True), repeat=2):
        assert (key == other) == (told == other_told)


@pytest.mark.parametrize("one", UNKNOWN, ids=lambda one: type(one).__name__)
def test_arguments_that_are_not_told_apart_have_no_key(way, one):
    assert quick_key("Bcast", "binomial", (BASE, one)) is None


@given(call=st.lists(st.sampled_from(KNOWN), min_size=1, max_size=5), other=st.sampled_from(KNOWN), data=st.data())
def test_every_argument_counts_in_its_place(way, call, other, data):
    place = data.draw(st.integers(0, len(call) - 1))
    changed = [*call[:place], other, *call[place + 1 :]]
    one, two = (quick_key("Bcast", "binomial", tuple(given for given, _ in some)) for some in (call, changed))
    assert (one == two) == (call[place][1] == other[1])


def test_a_key_tells_the_method_and_the_algorithm(way):
    keys = {quick_key(*call, (BASE, 0)) for call in (("Bcast", "a"), ("Bcast", "b"), ("Reduce", "a"))}
    assert len(keys) == 3


def test_counts_are_told_by_what_they_are_and_not_where(way):
    counts = np.array([3, 5])
    key = quick_key("Reduce_scatter", "ring", (BASE, BASE[:8], counts, MPI.SUM))
    assert key == quick_key("Reduce_scatter", "ring", (BASE, BASE[:8], counts.copy(), MPI.SUM))
    counts[:] = 5, 3
    assert key != quick_key("Reduce_scatter", "ring", (BASE, BASE[:8], counts, MPI.SUM))


@compiled
def test_what_python_would_have_to_do_is_done_in_c():
    """Else it would be right, and slow."""
    lasting = {id(MPI.SUM): MPI.SUM}
    assert packed((BASE, BASE[:8], MPI.SUM, 0), lasting)
    assert packed((), lasting) == b""
    for given_, _ in MESSAGES:
        assert packed((given_, given_), {id(None): None, id(MPI.INT): MPI.INT})
    for given_ in ((1 << 64,), (MPI.MAX,), (READ_ONLY,), ([BASE, [0] * 2000],), ([[[[[[BASE]]]]]],)):
        assert packed(given_, lasting) is None
    for given_ in ((1 << 64,), (MPI.MAX,), ([BASE, [0] * 2000],), ([BASE, np.zeros(5000)],), (BASE,) * 5):
        assert placed(given_, lasting) == (None, ())


@compiled
@given(one=st.sampled_from([*ARRAYS, READ_ONLY]), other=st.sampled_from([*ARRAYS, READ_ONLY]), last=st.integers(0, 1))
def test_a_key_without_addresses_tells_all_else(one, other, last):
    lasting, counts = {}, np.arange(1000)
    here, there = (placed(([array, counts], 3), lasting) for array in (one, other))
    assert [of[1] for of in (here, there)] == [(array.__array_interface__["data"][0],) for array in (one, other)]
    alike = [(array.nbytes, array.dtype.char, array.flags.writeable) for array in (one, other)]
    assert (here[0] == there[0]) == (alike[0] == alike[1])
    counts[-1] += last
    assert (placed(([one, counts], 3), lasting)[0] == here[0]) == (not last)


@compiled
@pytest.mark.parametrize("given_", [(), ((),), ([], {}), ((), []), ((), {}, 1)])
def test_other_arguments_are_refused(given_):
    for make in (packed, placed):
        with pytest.raises(TypeError, match="a tuple and a dictionary"):
            make(*given_)


@compiled
def test_keys_hold_nothing():
    """Neither of what has a key nor of what has none."""
    held, lasting = (BASE, READ_ONLY, MPI.SUM, None, COUNTS), {id(MPI.SUM): MPI.SUM}

    def use(times):
        for _ in range(times):
            packed((BASE, MPI.SUM, 1 << 40), lasting)
            packed((BASE, READ_ONLY, None), lasting)
            packed((BASE, None), lasting)
            placed(([READ_ONLY, COUNTS], [BASE, COUNTS]), lasting)
            placed(([READ_ONLY, COUNTS], [BASE, COUNTS, COUNTS[::2]]), lasting)
            packed(([BASE, COUNTS, (COUNTS, MPI.SUM)], [BASE, COUNTS, READ_ONLY[::2]]), lasting)

    use(10)
    before = [*map(sys.getrefcount, held), sys.getallocatedblocks()]
    use(1000)
    after = [*map(sys.getrefcount, held), sys.getallocatedblocks()]
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 500
