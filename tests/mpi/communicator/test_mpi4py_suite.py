"""mpi4py's own tests, natively and through the launcher: each that passes natively passes, or has a reason."""

import json
import re
import sys
import tarfile
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.hostile.modes import MODES, NEIGHBOURS, variables, words, write_rules
from tests.support import ROOT, mpi_job

pytestmark = pytest.mark.long

PROGRAM = ROOT / "tests" / "programs" / "mpi4py_suite.py"
SOURCES = Path(sys.prefix) / "sources"  # where `make venv` puts mpi4py's source distribution

# Tests, as a pattern of names, whose outcome differs from the native one, and why.
DIFFERENCES = {
    r"test_objmodel\.TestObjModel\.testCAPI|test_comm_inter\.TestIntercomm(Dup){0,2}\.testHandle": (
        "compiled code makes an object of mpi4py's own class from a bare handle; ours equals that class, but is another"
    ),
    r"test_p2p_obj\.TestP2PObjWorld(Dup)?\.testCommLock": (
        "a plan of ours takes no lock of mpi4py's, which is private: the standard forbids two collectives at once"
    ),
}

# On COMM_WORLD only: its duplicates, and COMM_SELF, are for the full product.
COLLECTIVE = (
    *("test_cco_buf.TestCCOBufWorld", "test_cco_buf.TestCCOBufInplaceWorld", "test_cco_obj.TestCCOObjWorld"),
    *("test_cco_vec.TestCCOVecWorld", "test_cco_vec.TestCCOVecInplaceWorld", "test_msgzero.TestMessageZeroWorld"),
)
PERSISTENT = ("test_cco_pr_buf.TestCCOBufWorld", "test_cco_pr_vec.TestCCOVecWorld")
OF_NEIGHBOURS = ("test_cco_ngh_buf", "test_cco_ngh_obj", "test_cco_pr_ngh_buf")
HANDLES = (
    *("test_attributes", "test_comm", "test_comm_inter", "test_comm_topo", "test_errhandler", "test_exceptions"),
    *("test_group", "test_handle", "test_msgspec", "test_objmodel", "test_op", "test_pickle", "test_subclass"),
    *("test_toplevel", "test_util_pkl5", "test_util_sync"),
)
# Other processes are started natively too (test_util_pool then hangs after all other modules with Open MPI, natively as
# well), and windows and files use our communicators as handles only.
ELSEWHERE = (
    "test_spawn",
    "test_dynproc",
    "test_util_pool",
    "test_win",
    "test_rma",
    "test_rma_nb",
    "test_file",
    "test_io",
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """The folder of the tests of the installed release."""
    archive = SOURCES / f"mpi4py-{version('mpi4py')}.tar.gz"
    if not archive.exists():
        pytest.skip(f"{archive} is not here: `make venv` could not fetch it")
    folder = tmp_path_factory.mktemp("mpi4py")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz") / "test"


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A rules file that forces schedules: another one for each class of sizes, so that all have turns."""
    folder = tmp_path_factory.mktemp("rules")
    write_rules(folder)
    return folder


@pytest.fixture
def outcomes(suite, rules, tmp_path):
    """Runs tests on so many ranks in a mode; returns test -> rank -> (outcome, what was said)."""

    def run(mode, ranks, names, timeout):
        folder = tmp_path / mode
        folder.mkdir(exist_ok=True)
        env = {"OMPI_MCA_osc": "^ucx", **variables(mode)}
        ended = mpi_job(ranks, "-m", *words(mode, rules), PROGRAM, suite, folder, *names, timeout=timeout, env=env)
        found = defaultdict(dict)
        for rank in range(ranks):
            for line in (folder / str(rank)).read_text().splitlines():
                test, outcome, said, _ = json.loads(line)
                found[test][rank] = outcome, said
        assert sum(map(len, found.values())), ended.stderr[-4000:]
        return found

    return run


def failures(found):
    """Tests that failed or did not end, with what each rank said."""
    bad = {"failed", "begun"}
    return {test: said for test, said in found.items() if bad & {outcome for outcome, _ in said.values()}}


def reason(test):
    """Why a test's outcome is expected to differ; None where it is not."""
    return next((why for pattern, why in DIFFERENCES.items() if re.fullmatch(pattern, test)), None)


def as_natively(outcomes, mode, ranks, modules, timeout):
    """Run modules through the launcher; what fails there, and has no reason to, has to fail natively too."""
    found = outcomes(mode, ranks, modules, timeout)
    unexplained = {test: said for test, said in failures(found).items() if reason(test) is None}
    native = outcomes("native", ranks, unexplained, timeout) if unexplained else {}
    worse = {test: said for test, said in unexplained.items() if test not in failures(native)}
    assert not worse, json.dumps(worse, indent=1)
    assert sum(of[0][0] == "passed" for of in found.values() if 0 in of) > 2 * len(modules)


@pytest.mark.parametrize(("mode", "ranks"), [("default", 2), ("schedules", 3)])
def test_collectives(outcomes, mode, ranks):
    as_natively(outcomes, mode, ranks, COLLECTIVE, timeout=300)


def test_persistent_collectives(outcomes):
    as_natively(outcomes, "schedules", 2, PERSISTENT, timeout=300)


@pytest.mark.parametrize(
    ("mode", "tests"),
    [
        ("hosts", ["test_cco_ngh_buf.TestCCONghBufWorld.testNeighborAlltoall"]),
        ("leaves", ["test_cco_pr_ngh_buf.TestCCONghBufWorld.testNeighborAllgather"]),
    ],
)
def test_neighbours(outcomes, mode, tests):
    """Blocking and non-blocking calls, and requests; the product below has all."""
    found = outcomes(mode, 3, tests, timeout=100)
    assert {outcome for of in found.values() for outcome, _ in of.values()} == {"passed"}, failures(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("mode", [*MODES, *NEIGHBOURS])
def test_all_neighbours(outcomes, mode, ranks):
    as_natively(outcomes, mode, ranks, OF_NEIGHBOURS, timeout=300)


def test_communicators_and_messages(outcomes):
    as_natively(outcomes, "schedules", 3, HANDLES, timeout=300)


@pytest.mark.exhaustive
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("mode", MODES)
def test_every_module(outcomes, suite, mode, ranks):
    modules = sorted(path.stem for path in suite.glob("test_*.py") if path.stem not in ELSEWHERE)
    as_natively(outcomes, mode, ranks, modules, timeout=1800)


def test_each_difference_has_a_test_that_shows_it(outcomes):
    """What no longer differs leaves the list."""
    names = ("test_objmodel", "test_p2p_obj.TestP2PObjWorld.testCommLock")
    shown = outcomes("schedules", 2, names, timeout=120)
    assert {why for test in failures(shown) if (why := reason(test))} == set(DIFFERENCES.values())
