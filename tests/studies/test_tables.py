"""Tables of docs/lab: each has a stamp, and rows that are made again have the page's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from studies import __main__ as studies
from studies import stamps, tablelist, tables
from studies.stamps import MADE, NONE, Placed, Stamp, digests, placed_in, stamp_of
from tests.support import ROOT

QUICK = 20  # seconds of a processor that a whole table may take, so that rows of it are made again here
WHOLE = 10  # seconds below which all rows are made again, not two
STAMP = Stamp("python -m studies x", MADE, date(2026, 1, 2), "0123abcd", 7, "studies.x", "0123abcd", NONE)


def quick_tables() -> Iterator[Any]:
    """Tables that take few seconds, if what they share with the command's first table does, too."""
    seconds = dict[str, int]()  # of each command's first table, which includes what all share
    for table in tablelist.tables_of():
        stamp = table.stamp
        if stamp is None or stamp.kind != MADE or stamp.seconds is None:
            continue
        shared = seconds.setdefault(stamp.command, stamp.seconds)
        if max(shared, stamp.seconds) < QUICK:
            yield pytest.param(table, id=table.name)


def test_each_table_of_results_has_a_stamp_of_code_that_is_here() -> None:
    found = [*tablelist.tables_of()]
    assert [f"{table.page.name}:{table.line}" for table in found if table.stamp is None] == []
    modules = {table.stamp.module for table in found if table.stamp is not None} - {NONE}
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)


@pytest.mark.parametrize("table", [*quick_tables()])
def test_rows_that_are_made_again_are_those_of_the_page(
    table: Placed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = table.stamp
    assert stamp is not None
    if digests(stamp.module, stamp.command).missing and stamp.data != NONE:
        pytest.skip(f"{table.name}: no shared data")
    lines, rows_made = tables.table_lines, None if stamp.seconds is not None and stamp.seconds < WHOLE else 2
    monkeypatch.setattr(tables, "table_lines", lambda head, rows: lines(head, islice(rows, rows_made)))
    assert studies.main([*stamp.command.split()[3:], "--only", table.name]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert told == [*table.rows[: len(told)]]
    assert len(told) == len(table.rows) if rows_made is None else min(2 + rows_made, len(table.rows))


def test_a_stamp_is_read_as_it_was_written() -> None:
    for stamp in (STAMP, replace(STAMP, seconds=None, commit="0123abcd+"), replace(STAMP, module=NONE, code=NONE)):
        assert Stamp.parse(str(stamp)) == stamp
    assert Stamp.parse("<!-- table: made by hand -->") is None


def test_a_page_has_a_stamp_under_each_of_its_tables(tmp_path: Path) -> None:
    lines = ["# Page", "| a |", "|---|", "| 1 |", "", "| b |", "|---|"]
    page = tmp_path / "page.md"
    page.write_text("\n".join(tables.stamped(lines, STAMP)))
    first, second = placed_in(page)
    assert (first.rows, first.stamp, second.stamp) == (("| a |", "|---|", "| 1 |"), STAMP, STAMP)
    page.write_text("<!-- x -->\n| a |\n|---|\n<!-- end of x -->\n```text\n| no | table |\n```\n| b | c |\n")
    assert [(one.name, one.line, one.stamp) for one in placed_in(page)] == [("x", 2, None), ("b, c", 8, None)]


CODE = {
    "studies/one.py": '"""Doc."""\nfrom . import two\nfrom topompi.interference.kernels import halo\nA = 1\n',
    "studies/two.py": "def f():\n    return 1\n",
    "topompi/interference/kernels/halo.py": "B = 2\n",
    "topompi/jobs/simulation.py": "C = 3\n",
}


@pytest.mark.parametrize(
    ("path", "before", "after", "counts"),
    [
        ("studies/one.py", "A = 1", "A = 2", True),
        ("studies/two.py", "return 1", "return 2", True),
        ("topompi/interference/kernels/halo.py", "B = 2", "B = 3", True),
        ("studies/one.py", '"""Doc."""', '"""Other."""', False),
        ("studies/two.py", "    return", "    # why\n    return ", False),
        ("topompi/jobs/simulation.py", "C = 3", "C = 4", False),
    ],
)
def test_the_digest_follows_code_that_makes_numbers_and_not_words(
    path: str, before: str, after: str, counts: bool
) -> None:
    changed = CODE | {path: CODE[path].replace(before, after)}
    old, new = (
        digests("studies.one", read=lambda name, files=files: files[name].encode() if name in files else None)  # type: ignore[misc]
        for files in (CODE, changed)
    )
    assert (old.code != new.code) == counts


def test_the_digest_of_data_follows_the_files_that_the_code_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(stamps, "SHARED_DATA", tmp_path)
    code = {"studies/one.py": b"LOG = 'logs/one.swf'\n"}
    found = []
    for content in ("1", "2"):
        (tmp_path / "logs" / "one.swf").write_text(content)
        (tmp_path / "logs" / "two.swf").write_text(content)
        stamps._shared.cache_clear()
        found.append(digests("studies.one", read=code.get).data)
    (tmp_path / "logs" / "one.swf").unlink()
    (tmp_path / "logs" / "two.swf").unlink()
    stamps._shared.cache_clear()
    assert digests("studies.one", read=code.get).missing
    stamps._shared.cache_clear()
    assert NONE not in found
    assert found[0] != found[1]


def test_the_list_names_each_table_with_what_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = stamp_of("python -m studies slow", "studies.slow.cli", seconds=3.2)
    stale = replace(now, code="00000000")
    (tmp_path / "page.md").write_text(f"| a |\n|---|\n{now}\n\n| b |\n|---|\n{stale}\n\n| c |\n|---|\n")
    monkeypatch.setattr(tablelist, "tables_of", lambda: placed_in(tmp_path / "page.md"))
    assert studies.main(["tables"]) == 0
    *rows, total = capsys.readouterr().out.splitlines()
    states = [row.split(" | ")[:3] for row in rows]
    assert [state[2] for state in states] == [tablelist.CURRENT, "older than its code", tablelist.UNSTAMPED]
    assert total == "3 tables: 1 current, made; 1 no stamp; 1 older than its code, made"
