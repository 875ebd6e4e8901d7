"""Slurm's text, which one package alone reads: running jobs, accounts, and a job's environment."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT
from topompi.errors import SourceError
from topompi.inputs.hostlist import compress
from topompi.inputs.slurm import accounting, environment
from topompi.inputs.slurm.running import read_running

names = st.from_regex(r"[A-Za-z0-9_.]{1,8}", fullmatch=True)
lists = st.lists(st.integers(0, 99).map("n{:02d}".format), min_size=1, max_size=5, unique=True)


@given(jobs=st.dictionaries(names.filter(lambda name: name.lower() != "job"), lists, min_size=1, max_size=4))
def test_three_ways_to_write_running_jobs_are_read_alike(jobs: dict[str, list[str]], tmp_path_factory) -> None:
    listed = [{"job_id": name, "job_state": ["RUNNING"], "nodes": compress(hosts)} for name, hosts in jobs.items()]
    waiting = {"job_id": "waits", "job_state": ["PENDING"], "nodes": ""}
    forms = [
        json.dumps({"jobs": [*listed, waiting]}),
        "job,hosts\n" + "".join(f"{name},{compress(hosts)}\n" for name, hosts in jobs.items()),
        "# now\n" + "".join(f"{name}\t{compress(hosts)}\n" for name, hosts in jobs.items()),
    ]
    path = tmp_path_factory.getbasetemp() / "running"
    for form in forms:
        path.write_text(form)
        assert {job.name: list(job.hosts) for job in read_running(path)} == jobs


def test_a_name_with_blanks_is_one_of_csv(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("my job,n[1-2]\n")
    assert [(job.name, job.hosts) for job in read_running(tmp_path / "jobs.csv")] == [("my job", ("n1", "n2"))]


def test_nothing_runs_where_a_list_has_comments_alone(tmp_path: Path) -> None:
    (tmp_path / "now").write_text("# idle\n")
    assert read_running(tmp_path / "now") == []


def test_a_job_that_comes_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "now").write_text("a n1\n\na n2\n")
    with pytest.raises(SourceError, match=r"now:3: expecting each job once, got 'a' again, first at .*now:1"):
        read_running(tmp_path / "now")


@given(st.integers(0, 10**6))
def test_a_span_as_slurm_writes_it_comes_back(seconds: int) -> None:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    written = f"{days}-{hours:02d}:{minutes:02d}:{rest:02d}" if days else f"{hours:02d}:{minutes:02d}:{rest:02d}"
    assert accounting.span(written) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02T00:00:01", 86_401),
        ("1970-01-01T01:00:00+01:00", 0),
        ("Unknown", None),
        ("2014-13-01T00:00:00", None),
    ],
)
def test_a_moment_is_in_utc_where_it_has_no_zone(text: str, seconds: int | None) -> None:
    assert accounting.moment(text) == seconds


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("7_3", 7), ("7+1", 7), ("7_[1-9]", 7), ("7.batch", None)])
def test_arrays_and_packs_are_named_by_their_job(text: str, number: int | None) -> None:
    assert accounting.job_number(text) == number


def test_a_host_has_an_address_only_where_slurm_says_one() -> None:
    assert environment.own_address({}) is None
    assert environment.own_address({environment.ADDRESS: "s.n", environment.PATTERN: "switch.node"}) == (
        "s.n",
        "switch.node",
    )
    assert environment.hosts_of_job({}) is None
    assert environment.hosts_of_job({environment.HOSTS: "n[1-2]"}) == ["n1", "n2"]


def test_no_other_module_knows_slurms_variables_and_commands() -> None:
    """Exceptions: launchers' own words for a rank, which are of several kinds, and emulate, which starts a Slurm."""
    told = re.compile(r"[\"'](?:SLURM_(?!STEP_NUM_TASKS|PROCID|HOSTFILE)[A-Z_]+|squeue|sacct|sinfo)[\"']")
    folders = [ROOT / name for name in ("topompi", "osu_like_bench")]
    found = {path.relative_to(ROOT) for one in folders for path in one.rglob("*.py") if told.search(path.read_text())}
    assert {path.parent.as_posix() for path in found} == {"topompi/inputs/slurm", "osu_like_bench/emulate"}
