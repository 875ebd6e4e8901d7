"""Names of a user's class meet none of topompi's, whose classes have MPI's names and names with one prefix."""

import ast
import inspect
import json

import pytest
from mpi4py import MPI

import topompi
from tests.support import ROOT, run_mpi
from topompi.mpi.communicator.kinds import KINDS

PROGRAM = ROOT / "tests" / "programs" / "names.py"
NETWORK = "--topology", "xgft:2,2,2;1,1,1", "--hosts", "h[0000,0001,0005]"


def names_used():
    """The attributes that topompi's code of communicators reads from any object, without those of MPI's classes."""
    files = [
        file
        for room in ("communicator", "dispatch", "execution")
        for file in (ROOT / "topompi/mpi" / room).rglob("*.py")
    ]
    found = {
        node.attr for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
    }
    found |= {
        "interface",
        "remap",
        "refreshed",
        "choice_of",
        "mapping_report",
        "_choose",
        "_find",
        "_release",
        "_state",
    }
    return sorted(one for one in found - set(dir(MPI.Distgraphcomm)) if not one.startswith(("__", "_topompi_")))


@pytest.mark.parametrize("name", KINDS)
def test_a_class_of_ours_has_mpi_s_names_and_one_prefix(name):
    ours, native = KINDS[name], getattr(MPI, name)
    more = {one for one in set(dir(ours)) - set(dir(native)) if not one.startswith(("__", "_topompi_"))}
    assert more == {"_abc_impl"}  # Python's own, because programs derive abstract classes
    assert "__dict__" not in dir(ours)


@pytest.mark.parametrize("name", KINDS)
def test_methods_have_the_signatures_of_mpi4py_s(name):
    ours, native = KINDS[name], getattr(MPI, name)
    for one in dir(native):
        if callable(getattr(native, one)) and not one.startswith("__"):
            assert inspect.signature(getattr(ours, one)) == inspect.signature(getattr(native, one)), one


SET = """
import topompi
from mpi4py import MPI
world = MPI.COMM_WORLD
for act in ("world.foo = 1", "world.Barrier = print", "del world.Barrier", "world.__dict__", "MPI.Intracomm.foo = 1",
            "MPI.Intracomm.Barrier = print", "MPI.Cartcomm.Sub = print", "del MPI.Intracomm.bcast", "world.interface",
            "MPI.Intercomm.Merge = 3", "world.size = 3", "world.Dup().foo = 1", "world.Create_cart([1]).foo = 1"):
    try:
        exec(act)
        print("done", act)
    except Exception as error:
        print(type(error).__name__, error)
print([one for one in dir(world) if one[0] != "_"], world.__class__.__name__, MPI.Intracomm.__name__)
if world is not topompi.Intracomm(world):
    print(topompi.interface(world).num_ranks)
"""


def test_the_launcher_s_communicators_refuse_attributes_as_mpi4py_s_do():
    native, ours = (
        run_mpi(1, "-m", launcher, "-c", SET).stdout.replace("mpi4py.MPI.", "") for launcher in ("mpi4py", "topompi")
    )
    assert ours == native
    assert len(ours.splitlines()) == 15
    assert "done" not in ours


def test_a_class_derived_from_ours_may_have_attributes_as_from_mpi4py_s():
    kind = type("Mine", (topompi.Intracomm,), {"interface": 5})
    comm = kind(MPI.COMM_SELF)
    comm.foo = kind.more = 3
    assert (comm.foo, comm.more, comm.interface, topompi.interface(comm).num_ranks) == (3, 3, 5, 1)


@pytest.mark.parametrize("launcher", ["mpi4py", "topompi"])
def test_names_of_a_user_s_class_change_no_collective(launcher, tmp_path):
    names = names_used()
    assert len(names) > 300
    env = {"TOPOMPI_NATIVE_CALLS": "0"}
    if launcher == "topompi":
        rules = tmp_path / "rules.json"
        rules.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": [{"algorithm": "leaders"}]}))
        env |= {"TOPOMPI_RULES": str(rules), "TOPOMPI_PROFILE": str(tmp_path / "profile")}
    words = NETWORK if launcher == "topompi" else ()
    done = run_mpi(3, "-m", launcher, *words, PROGRAM, *names, env=env, timeout=60)
    assert done.stdout.startswith(f"right {len(names)} attributes "), done.stdout[-2000:] + done.stderr[-3000:]
