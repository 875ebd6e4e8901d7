"""``TOPOMPI_REPRODUCIBLE``: calls alike have the same bits, in a job and from job to job."""

import json

import pytest

from tests.support import ROOT, run_mpi
from topompi.errors import TopompiError
from topompi.inputs.settings import check_settings, native_calls, reproducible, tuning
from topompi.mpi.selection.policy import is_forgetful

PROGRAM = ROOT / "tests" / "programs" / "same_bits.py"
RULES = {
    "Allreduce": "halving",
    "Reduce": "circulant",
    "Reduce_scatter": "halving",
    "Scan": "doubling",
}


def bits(folder, ranks=3, **settings):
    """The lines of a job: methods with several results, and the digest of all results."""
    env = {"XDG_CACHE_HOME": str(folder), **{f"TOPOMPI_{name}": value for name, value in settings.items()}}
    done = run_mpi(ranks, PROGRAM, env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_neither_trials_nor_their_memory_change_bits(tmp_path):
    (first,) = bits(tmp_path, REPRODUCIBLE="1")
    assert bits(tmp_path, REPRODUCIBLE="1", TUNE="measure") == [first]
    assert not list(tmp_path.rglob("*.json"))


def test_rules_count_from_the_first_call_of_a_new_communicator_on(tmp_path):
    rules = [{"methods": [name], "algorithm": algorithm} for name, algorithm in RULES.items()]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": rules}))
    (first,) = bits(tmp_path, RULES=str(file), REPRODUCIBLE="1")
    assert bits(tmp_path, RULES=str(file), REPRODUCIBLE="1", TUNE="again", NATIVE_CALLS="20") == [first]


@pytest.mark.parametrize("word", ["", "measure", "again", "off"])
def test_the_setting_overrides_trials_and_first_calls(word):
    environment = {"TOPOMPI_TUNE": word, "TOPOMPI_NATIVE_CALLS": "5"}
    assert (tuning(environment), native_calls(environment), reproducible(environment)) == (word, 5, False)
    environment["TOPOMPI_REPRODUCIBLE"] = "1"
    assert (tuning(environment), native_calls(environment), is_forgetful(environment)) == ("off", 0, True)


@pytest.mark.parametrize("wrong", [{"TOPOMPI_REPRODUCIBLE": "yes"}, {"TOPOMPI_REPRODUCABLE": "1"}])
def test_another_word_and_a_misspelt_name_are_refused(wrong):
    with pytest.raises(TopompiError, match="TOPOMPI_REPRODUCIBLE"):
        check_settings(wrong, speaks=False)
