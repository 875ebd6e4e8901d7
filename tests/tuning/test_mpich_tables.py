"""MPICH's tables: read from a library's bytes, and written with choices for one number of ranks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mpi.prediction.libraries.mpich_forced import ALGORITHMS, INTEL
from topompi.mpi.prediction.librarychoices import LibraryChoice
from topompi.mpi.tuning.intel_adjust import write_adjust
from topompi.mpi.tuning.mpich_tables import FLAT, MPICHTableError, MPICHTables, write_compositions, write_table

OWN = {"comm_size=pow2": {"algorithm=MPIR_own_power": {}}, "comm_size=any": {"algorithm=MPIR_own": {}}}
TABLE = {f"collective={method.lower()}": {"comm_type=intra": OWN, "comm_type=inter": {}} for method in ALGORITHMS}
OVER = {
    f"collective={name}": {"comm_type=intra": {"comm_hierarchy=any": {f"composition={word}": {}}}}
    for name, word in FLAT.items()
}
NAMES = b"".join(f"MPIR_{m}_intra_{word}\0".encode() for m, words in ALGORITHMS.items() for word in words)
LIBRARY = b"\x7fELF\0" + json.dumps(TABLE).encode() + b"\0\xff" + json.dumps(OVER, indent=1).encode() + b"\0" + NAMES


def read(tmp_path, data):
    (tmp_path / "libmpi.so").write_bytes(data)
    return MPICHTables.read(tmp_path / "libmpi.so")


def rule(tree, facts):
    """The first rule of a tree that fits a call, as MPICH looks for it."""
    for key, child in tree.items():
        if not child:
            return key
        word = next(sign for sign in ("<=", "<", "=") if sign in key)
        name, value = key.split(word)
        known = facts[name]
        if value == "any" or (word == "=" and value == "pow2" and known & (known - 1) == 0) or known == value:
            return rule(child, facts)
        if value.isdigit() and (known < int(value) or (word == "<=" and known == int(value))):
            return rule(child, facts)
    raise AssertionError(f"no rule of {list(tree)} fits")


@st.composite
def chosen_of(draw):
    chosen = []
    for method in draw(st.lists(st.sampled_from(sorted(ALGORITHMS)), min_size=1, unique=True)):
        sizes = sorted(draw(st.sets(st.integers(1, 1 << 20), min_size=1, max_size=5)))
        for nbytes in sizes:
            number = draw(st.integers(0, len(ALGORITHMS[method])))
            chosen.append(LibraryChoice(method, nbytes, number, 8192, "", 1.0, 1.0))
    return chosen


@given(chosen_of(), st.integers(2, 70), st.integers(-1, 1), st.data())
@examples(60)
def test_choices_hold_for_one_number_of_ranks_and_the_librarys_rules_elsewhere(
    tmp_path_factory, chosen, ranks, off, data
):
    tables = read(tmp_path_factory.mktemp("library"), LIBRARY)
    assert (tables.algorithms, tables.compositions) == (TABLE, OVER)
    made = json.loads(write_table(tables, chosen, ranks)), json.loads(write_compositions(tables, chosen, ranks))
    method = data.draw(st.sampled_from(sorted({one.method for one in chosen})))
    of_method = [one for one in chosen if one.method == method]
    last = 2 * of_method[-1].nbytes
    edges = [edge + shift for one in of_method for edge in (one.nbytes, last) for shift in (-1, 0)]
    nbytes, commutes, built_in = data.draw(st.sampled_from(edges)), *(data.draw(st.booleans()) for _ in range(2))
    times = ranks if method == "Allgather" else 1
    words = {True: "yes", False: "no"}
    facts = {"comm_size": ranks + off, "avg_msg_size": nbytes, "total_msg_size": nbytes * times, "count": 1 << 30}
    facts |= {"is_commutative": words[commutes], "is_op_built_in": words[built_in], "is_block_regular": "yes"}
    facts |= {"is_sendbuf_inplace": "no", "comm_hierarchy": "parent"}
    one = next((one for one in reversed(of_method) if one.nbytes <= nbytes < last), None)
    ruled = off == 0 and one is not None and one.number > 0
    if method.startswith("Reduce") or method == "Allreduce":
        ruled &= commutes and (built_in or method.startswith("Reduce_scatter"))
    wanted = rule(OWN, facts)
    tree = made[0][f"collective={method.lower()}"]["comm_type=intra"]
    if ruled:
        # A rule has settings below it, or is a leaf.
        wanted = f"algorithm=MPIR_{method}_intra_{ALGORITHMS[method][one.number - 1]}"
        assert wanted in json.dumps(tree)
    elif off:
        assert rule(tree, facts) == wanted
    if method.lower() in FLAT:
        over = made[1][f"collective={method.lower()}"]["comm_type=intra"]
        assert rule(over, facts) == f"composition={FLAT[method.lower()]}"
    if "pipelined" not in wanted:
        assert rule(tree, facts) == wanted


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", LIBRARY[:300], LIBRARY.replace(b"comm_type=intra", b"comm_type=intrx"), b'{"collective=' * 999],
)
def test_other_files_are_refused_in_one_line(tmp_path, data):
    with pytest.raises(MPICHTableError, match=r"libmpi\.so: expecting a library of MPICH") as error:
        read(tmp_path, data)
    assert "\n" not in str(error.value)


def test_algorithms_that_the_library_lacks_are_not_known(tmp_path):
    tables = read(tmp_path, LIBRARY.replace(b"intra_pipelined_tree", b"intra_xipelined_tree"))
    assert tables.known("Bcast") == {*ALGORITHMS["Bcast"], "xipelined_tree"} - {"pipelined_tree"}


def test_variables_of_intel_have_inclusive_spans_for_one_number_of_ranks():
    numbers = {4096: 0, 16384: 3, 65536: 3, 262144: 1}
    chosen = [LibraryChoice("Bcast", nbytes, number, 0, "", 1.0, 1.0) for nbytes, number in numbers.items()]
    text = write_adjust(chosen, 16, ["made up"])
    assert text == "# made up\nexport I_MPI_ADJUST_BCAST='3:16384-262143@16-16;1:262144-524287@16-16'\n"
    assert all(set(words.values()) <= set(ALGORITHMS[method]) for method, words in INTEL.items())
