"""The ledger: nothing is lost or charged twice, by writers at the same time and by writers that are killed."""

from __future__ import annotations

import csv
import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, examples, refusal
from topompi.colocation.errors import ColocationError
from topompi.colocation.prices.accounts import Ledger
from topompi.colocation.prices.reports import to_csv, to_html, to_json

WRITER = """
import sys
from topompi.colocation.prices.accounts import Ledger
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
    code = "import sys; from topompi.colocation import Ledger; Ledger(sys.argv[1]).grant('p', sys.argv[2], 1)"
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
        "import os, sys\nfrom topompi.colocation.prices.accounts import Ledger\nledger = Ledger(sys.argv[1])\n"
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
        with pytest.raises(ValueError, match="JSON"):
            ledger.charge("p", "7", "poppa", 1, basis={"not": float("nan")})
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
    assert "version 1, got 9" in refusal(Ledger, newer, error=ColocationError)
