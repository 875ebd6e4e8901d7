"""``topompi jobs price``: prices from a log of the shutter and sacct or a list of jobs, and charges."""

import json
from pathlib import Path

import pytest

from studies.poppa.jobmodel import Phase, Shutter, simulate
from tests.support import command_line
from topompi.machine.colocation.estimates.records import write_records
from topompi.machine.colocation.prices.accounts import Ledger

LIST = "job,seconds,cores,project,user,solo_seconds\n0,7200,8,p,ann,3600\n1,7200,8,p,bob,\n9,3600,4,p,eve,\n"
SACCT = (
    "JobID|User|Account|Submit|Start|End|Elapsed|NNodes|State\n"
    "0|ann|p|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T02:00:00|02:00:00|1|COMPLETED\n"
    "0.batch|||2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T02:00:00|02:00:00|1|COMPLETED\n"
    "1|bob|p|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T02:00:00|02:00:00|1|COMPLETED\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A log of a job that its partner slows to half, and of the partner; both as a list and as sacct's lines."""
    found = tmp_path_factory.mktemp("prices")
    jobs = [[Phase(1.0, 3.0, 0.5)], [Phase(1.0, aggressiveness=1.0)]]
    write_records(found / "log", simulate(jobs, 20, Shutter(0.0032, 4, 0.2, jitter=0), nodes=1).records)
    (found / "list.csv").write_text(LIST)
    (found / "sacct").write_text(SACCT)
    return found


def told(folder: Path, *words: object) -> dict:
    done = command_line("jobs", "price", folder / "log", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_victim_of_half_the_speed_pays_half_of_the_price_alone(folder: Path):
    found = told(folder, folder / "list.csv", "--rate", 2)
    victim, partner, unmeasured = found["jobs"]
    awake = 1 - victim["stopped"]
    assert victim["stopped"] == pytest.approx(0.0076, abs=5e-4)
    assert victim["price"]["performance"] == pytest.approx(0.5)
    assert victim["price"]["amount"] == pytest.approx(2 * 8 * 0.5 * 0.5 * 2 * awake)
    assert victim["price"]["discount"] == pytest.approx(0.5)
    assert victim["usual"] == pytest.approx(2 * 8 * 2 * awake)
    assert partner["price"]["discount"] == pytest.approx(0)
    assert unmeasured["price"]["amount"] == 8
    assert (unmeasured["estimate"]["low"], unmeasured["estimate"]["high"]) == (0, 1)
    assert unmeasured["basis"]["why"].endswith("nothing is known, full price")


def test_sacct_gives_the_same_prices_for_whole_nodes(folder: Path):
    found = told(folder, folder / "sacct", "--rate", 2, "--cores", 8)
    listed = told(folder, folder / "list.csv", "--rate", 2)
    assert [(one["job"], one["project"], one["user"], one["cores"]) for one in found["jobs"]] == [
        ("0", "p", "ann", 8),
        ("1", "p", "bob", 8),
    ]
    assert [one["price"] for one in found["jobs"]] == [one["price"] for one in listed["jobs"][:2]]


def test_the_table_has_a_row_per_job_and_says_what_was_not_measured(folder: Path):
    done = command_line("jobs", "price", folder / "log", folder / "list.csv", "--rate", 2, COLUMNS="160")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0][:5] == ["job", "project", "cores", "hours", "performance"]
    assert rows[1][:7] == ["0", "p", "8", "2.00", "0.500", "0.500-0.500", "20/20"]
    assert rows[1][-2:] == ["50.0", "%"]
    assert "9: no shutter in which the job ran alone: nothing is known, full price" in done.stdout


def test_charges_are_made_once_and_reported(folder: Path, tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    words = (folder / "list.csv", "--rate", 2, "--ledger", ledger, "--grant", "p:2027=100")
    assert told(folder, *words, "--report", tmp_path / "all.html")["charged"] == 3
    assert told(folder, *words, "--report", tmp_path / "all.csv")["charged"] == 0
    with Ledger(ledger) as book:
        (balance,) = book.balances()
        assert balance.budget == 100
        assert balance.charged == pytest.approx(8 * (1 - 0.0076) + 32 * (1 - 0.0076) + 8, abs=0.01)
        assert book.charges()[0].basis["performance"] == pytest.approx(0.5)
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 4
    assert "performance 0.5" in (tmp_path / "all.html").read_text()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("sacct", "--rate", 1), "expecting --cores"),
        (
            ("list.csv", "--rate", 1, "--rule", "x"),
            "rule: expecting one of poppa, as-usual, oracle, or a module:function",
        ),
        (("list.csv", "--rate", 1, "--estimator", "x"), "estimator: expecting one of balanced"),
        (("list.csv", "--rate", 1, "--report", "a.csv"), "--report: expecting --ledger"),
        (("list.csv", "--rate", 1, "--rule", "oracle"), "job 1: expecting its run time alone"),
        (("list.csv", "--rate", 1, "--ledger", "new.db"), "expecting a project with a budget, got 'p'"),
        (("twice.csv", "--rate", 1), "job 0: expecting one run per job"),
        (("wrong.csv", "--rate", 1), "wrong.csv:2: cores: expecting a number, got 'many'"),
    ],
)
def test_errors_have_one_line(folder: Path, tmp_path: Path, words, error):
    for name in ("log", "sacct", "list.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "twice.csv").write_text("job,seconds,cores\n0,1,1\n0,2,1\n")
    (tmp_path / "wrong.csv").write_text("job,seconds,cores\n0,1,many\n")
    done = command_line("jobs", "price", "log", *words, folder=tmp_path)
    assert done.returncode == 1
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_job_on_several_nodes_has_the_performance_of_the_slowest(folder: Path):
    calm = [[Phase(1.0, 3.0)], [Phase(1.0, aggressiveness=1.0)]]
    write_records(folder / "calm", simulate(calm, 20, Shutter(0.0032, 4, 0.2, jitter=0), nodes=1).records)
    for logs in (["log", "calm"], ["calm", "log"]):
        words = ("jobs", "price", *logs, "list.csv", "--rate", 2, "--json")
        victim, *_ = json.loads(command_line(*words, folder=folder).stdout)["jobs"]
        assert victim["price"]["performance"] == pytest.approx(0.5)
        assert victim["stopped"] == pytest.approx(2 * 0.0076, abs=1e-3)
