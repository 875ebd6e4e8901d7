"""The ledger: nothing is lost or charged twice, by writers at the same time and by writers that are killed."""

import csv
import json
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.prices.accounts import Ledger
from topompi.machine.colocation.prices.reports import to_csv, to_html, to_json

WRITER = """
import sys
from topompi.machine.colocation.prices.accounts import Ledger
path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Ledger(path) as ledger:
    for job in range(first, last):
        ledger.charge("p", str(job), "poppa", 1.5, basis={"job": job})
        print(job, flush=True)
"""


def writer(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "ledger.db"
    with Ledger(found) as ledger:
        ledger.grant("p", "2027", 1000)
    return found


def sums(path: Path) -> tuple[int, float]:
    with Ledger(path) as ledger:
        return len(ledger.charges()), ledger.balances()[0].charged


def test_writers_at_the_same_time_lose_nothing_and_charge_each_job_once(path: Path):
    writers = [writer(path, first, first + 40) for first in (0, 20, 40, 0)]  # 80 jobs, half of them by several
    for one in writers:
        assert one.communicate(timeout=120)[0].count("\n") == 40
        assert one.returncode == 0
    assert sums(path) == (80, 120)


def test_processes_that_make_the_ledger_at_the_same_time_make_one(tmp_path: Path):
    code = "import sys; from topompi.machine.colocation import Ledger; Ledger(sys.argv[1]).grant('p', sys.argv[2], 1)"
    new = tmp_path / "new.db"
    makers = [subprocess.Popen([sys.executable, "-c", code, new, str(one)], cwd=ROOT) for one in range(6)]
    assert [one.wait(timeout=60) for one in makers] == [0] * 6
    with Ledger(new) as ledger:
        assert ledger.balances()[0].budget == 6


def test_a_writer_killed_in_mid_charge_loses_nothing_and_charges_nothing_twice(path: Path):
    told, last = set[int](), 400
    for attempt in range(6):
        one = writer(path, 0, last)
        assert one.stdout is not None
        told.add(int(one.stdout.readline()))  # it charges now
        time.sleep(0.004 * attempt)
        one.send_signal(signal.SIGKILL)
        told |= {int(line) for line in one.communicate(timeout=60)[0].splitlines() if line}
        with Ledger(path) as ledger:
            charged = {int(found.job): found for found in ledger.charges()}
        assert told <= set(charged)  # what was told to be charged is
        assert all((found.amount, found.basis) == (1.5, {"job": job}) for job, found in charged.items())
    with writer(path, 0, last) as end:
        end.communicate(timeout=120)
    assert sums(path) == (last, 1.5 * last)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("moment", ["INSERT", "COMMIT"])
def test_a_charge_is_not_there_if_its_writer_dies_just_before_the_end(path: Path, moment: str):
    code = (
        "import os, sys\nfrom topompi.machine.colocation.prices.accounts import Ledger\nledger = Ledger(sys.argv[1])\n"
        "ledger._base.set_trace_callback(lambda text: text.startswith(sys.argv[2]) and os.kill(os.getpid(), 9))\n"
        "ledger.charge('p', '7', 'poppa', 10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path, moment], cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with Ledger(path) as ledger:
        assert not ledger.charges()
        assert ledger.charge("p", "7", "poppa", 10)  # the lock is free, and the job is charged once
        assert ledger.balances()[0].left == 990


def test_a_transaction_that_fails_leaves_nothing(path: Path):
    with Ledger(path) as ledger:
        for basis in ({"not": float("nan")}, {"not": {1, 2}}):
            charge = partial(ledger.charge, basis=basis)
            assert "JSON" in refusal(charge, "p", "7", "poppa", 1, error=ColocationError)
        assert "project" in refusal(ledger.charge, "nobody", "7", "poppa", 1, error=ColocationError)
        assert not ledger.charges()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 10**9)), max_size=20))
@examples(30)
def test_the_budget_that_is_left_is_exact(entries):
    with Ledger(":memory:") as ledger:
        ledger.grant("p", "2027", 5)
        first: dict[str, int] = {}
        for job, millionths in entries:
            if first.setdefault(job, millionths) == millionths:
                ledger.charge("p", job, "poppa", millionths / 1e6)
            else:
                assert "got" in refusal(ledger.charge, "p", job, "poppa", millionths / 1e6, error=ColocationError)
        assert round(1e6 * ledger.balances()[0].left) == 5_000_000 - sum(first.values())


def test_entries_repeated_count_once_and_contradictions_are_refused(path: Path):
    with Ledger(path) as ledger:
        assert not ledger.grant("p", "2027", 1000)
        assert "budget 2027" in refusal(ledger.grant, "p", "2027", 5, error=ColocationError)
        assert ledger.charge("p", "7", "poppa", 10)
        assert not ledger.charge("p", "7", "poppa", 10)
        assert ledger.charge("p", "7", "as-usual", 12)  # another rule is another charge
        assert "project" in refusal(ledger.charge, "nobody", "8", "poppa", 1, error=ColocationError)
        for amount in (-1, float("nan"), 1e300):
            refusal(ledger.charge, "p", "8", "poppa", amount, error=ColocationError)
        assert (ledger.balances()[0].charged, ledger.balances()[0].left) == (22, 978)


def test_refunds_are_at_most_the_charge_and_count_once(path: Path):
    with Ledger(path) as ledger:
        ledger.charge("p", "7", "poppa", 10)
        assert ledger.refund("7", "poppa", "node fault", 6, "node n3 failed")
        assert not ledger.refund("7", "poppa", "node fault", 6, "node n3 failed")
        assert "at most 4" in refusal(ledger.refund, "7", "poppa", "more", 5, "", error=ColocationError)
        assert "expecting a charge" in refusal(ledger.refund, "8", "poppa", "x", 1, "", error=ColocationError)
        assert ledger.charges()[0].refunded == 6
        assert ledger.balances()[0].left == 996


def test_reports_have_the_charges_and_escape_the_words_of_users(path: Path):
    with Ledger(path) as ledger:
        ledger.grant("q", "x", 1)
        ledger.charge("p", "7", "poppa", 10.25, user="<b>=eve", basis={"performance": 0.5})
        ledger.charge("q", "8", "poppa", 1, user="=cmd()")
        rows = list(csv.DictReader(to_csv(ledger).splitlines()))
        assert [row["amount"] for row in rows] == ["10.250000", "1.000000"]
        assert rows[1]["user"] == "'=cmd()"
        assert json.loads(rows[0]["basis"]) == {"performance": 0.5}
        told = json.loads(to_json(ledger, "p"))
        assert [one["left"] for one in told["projects"]] == [989.75]
        assert [one["job"] for one in told["charges"]] == ["7"]
        page = to_html(ledger)
        assert "&lt;b&gt;=eve" in page
        assert "performance 0.5" in page
        assert "989.75" in page


def test_another_file_is_no_ledger(tmp_path: Path):
    other = tmp_path / "other"
    other.write_text("not a data base, but long enough to be taken for the header of one, or so it seems to us\n" * 9)
    assert "expecting a ledger" in refusal(Ledger, other, error=ColocationError)
    newer = tmp_path / "newer"
    sqlite3.connect(newer).execute("PRAGMA user_version = 9")
    assert "version 2, got 9" in refusal(Ledger, newer, error=ColocationError)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER free AFTER INSERT ON entry BEGIN UPDATE entry SET amount = 0; END",
        "CREATE TABLE more (x)",
        "CREATE VIEW shown AS SELECT * FROM entry",
        "DROP INDEX once",
        "DROP TRIGGER keep",
    ],
)
def test_a_schema_that_is_not_the_ledgers_is_refused_at_opening_and_by_a_ledger_that_is_open(path: Path, statement):
    with Ledger(path) as ledger:
        with sqlite3.connect(path) as base:
            base.execute(statement)
        assert "tables of a ledger" in refusal(ledger.charge, "p", "7", "poppa", 5, error=ColocationError)
    assert "tables of a ledger" in refusal(Ledger, path, error=ColocationError)


def tampered(path: Path, *statements: str) -> None:
    """Change a ledger as somebody who knows SQLite would: without the triggers, which are then made again."""
    with sqlite3.connect(path) as base:
        triggers = base.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name in ("keep", "hold"):
            base.execute(f"DROP TRIGGER {name}")
        for statement in (*statements, *(sql for (sql,) in triggers)):
            base.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET amount = 1 WHERE job = '7'",
        "UPDATE entry SET at = at + 1 WHERE number = 1",
        "UPDATE entry SET basis = '{}' WHERE job = '8'",
        "UPDATE entry SET user = 'eve' WHERE job = '7'",
        "DELETE FROM entry WHERE number = 2",
        "UPDATE entry SET number = number + 10",
        "INSERT INTO entry SELECT number + 9, kind, project, '9', rule, key, user, amount, basis, at, digest "
        "FROM entry WHERE job = '7'",
    ],
)
def test_a_changed_moved_or_removed_entry_is_seen(path: Path, statement):
    with Ledger(path) as ledger:
        for job in "78":
            ledger.charge("p", job, "poppa", 5, basis={"job": job})
        ledger.refund("7", "poppa", "x", 1, "")
        assert ledger.verify()[0] == 4
    tampered(path, statement)
    with Ledger(path) as ledger:
        assert "as it was written" in refusal(ledger.verify, error=ColocationError)


def test_entries_cut_off_at_the_end_change_the_last_digest(path: Path):
    with Ledger(path) as ledger:
        ledger.charge("p", "7", "poppa", 5)
        before = ledger.verify()
        assert before[1] in to_html(ledger)
        assert json.loads(to_json(ledger))["digest"] == before[1]
    tampered(path, "DELETE FROM entry WHERE number = 2")
    with Ledger(path) as ledger:
        assert ledger.verify() != before


def test_entries_cannot_be_changed_or_deleted_by_statements(path: Path):
    base = sqlite3.connect(path)
    for statement in ("UPDATE entry SET amount = 0", "DELETE FROM entry"):
        with pytest.raises(sqlite3.IntegrityError, match="entries are never"):
            base.execute(statement)


def test_sums_beyond_64_bits_are_exact(path: Path):
    most = 4e12  # service units; four of them exceed 2^63 millionths
    with Ledger(path) as ledger:
        for number in range(4):
            ledger.grant("q", str(number), most)
            ledger.charge("q", str(number), "poppa", most)
        assert [(one.budget, one.charged, one.left) for one in ledger.balances()][1] == (4 * most, 4 * most, 0)


def test_a_ledger_is_private_and_neither_a_link_nor_in_a_folder_of_others(tmp_path: Path):
    Ledger(tmp_path / "new.db").close()
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert "a link" in refusal(Ledger, tmp_path / "link", error=ColocationError)
    (tmp_path / "new.db").chmod(0o620)
    assert "others may write" in refusal(Ledger, tmp_path / "new.db", error=ColocationError)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    assert "nobody else can" in refusal(Ledger, tmp_path / "open" / "ledger.db", error=ColocationError)


@pytest.mark.parametrize("word", ["", "a\0b", "\ud800", "x" * 1001])
def test_names_that_cannot_be_kept_are_refused_in_our_words(path: Path, word: str):
    with Ledger(path) as ledger:
        for call in (ledger.grant, ledger.charge):
            refusal(call, *((word, "k", 1) if call == ledger.grant else ("p", word, "poppa", 1)), error=ColocationError)


def test_a_locked_or_damaged_ledger_gives_our_error(path: Path, monkeypatch):
    monkeypatch.setattr("topompi.machine.colocation.prices.accounts.PATIENCE", 0.01)
    with Ledger(path) as ledger, sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "locked" in refusal(ledger.balances, error=ColocationError)
        other.execute("ROLLBACK")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    assert "expecting a ledger" in refusal(lambda: Ledger(path).balances(), error=ColocationError)


def test_reports_show_control_characters_as_escapes(path: Path):
    with Ledger(path) as ledger:
        ledger.charge("p", "7\x1b[2J", "poppa", 1, user="a\u202eb")
        for text in (to_csv(ledger), to_html(ledger), to_json(ledger)):
            assert not set("\x1b\u202e") & set(text)
