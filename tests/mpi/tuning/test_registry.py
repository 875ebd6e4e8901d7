"""Users' functions are tuned against the algorithms of the registry."""

import json
import os

import pytest

from tests.schedules.test_registry import functions_folder  # noqa: F401 - a fixture
from tests.support import ROOT, run_mpi


def tune(folder, *arguments):
    where = ("--topology", "xgft:2,2;1,1", "--hosts", "h[0000-0003]")
    path = os.pathsep.join((str(ROOT), str(folder)))
    arguments = ("-m", "topompi", "tune", *arguments, *where, "-m", "1K", "-i", "6")
    return run_mpi(4, *arguments, timeout=90, env={"PYTHONPATH": path})


@pytest.mark.long
def test_a_function_is_tuned_against_the_others(folder):
    done = tune(folder, "bcast", "-a", "mine:spread,binomial", "--json")
    assert done.returncode == 0, done.stderr
    names = {result["algorithm"] for result in json.loads(done.stdout)["results"]}
    assert names == {"native", "mine:spread", "binomial"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "mine:short", "mine:short: end: output block 0 of rank 3 is never written", marks=pytest.mark.long
        ),
        pytest.param(
            "mine:nothing", "mine:nothing: expecting a function 'nothing' in mine, got none", marks=pytest.mark.long
        ),
        pytest.param("a.json", "or a module:function, got 'a.json'", marks=pytest.mark.long),
    ],
)
def test_what_is_wrong_is_not_tuned(folder, name, message):
    done = tune(folder, "bcast", "-a", name)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
