"""Tables of docs/lab: each has a stamp, and rows that are made again have the page's numbers."""

from collections.abc import Iterator
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from studies import __main__ as studies
from studies import stamps, tablelist, tables
from studies.stamps import MADE, NONE, Placed, Stamp, digests, placed_in
from tests.support import ROOT

QUICK = 12  # seconds of a processor below which a table is made again here
SHORT = 5  # the same for all tables of a command in the tests that are not long
SHARED = (  # what all of their tables share takes longer
    "python -m studies coscheduling2025 predict",
    "python -m studies jokanovic mixes",
    "python -m studies poppa model",
    "python -m studies records",
)
STAMP = Stamp("python -m studies x", MADE, date(2026, 1, 2), "0123abcd", 7, "studies.x", "0123abcd", NONE)


def quick_tables() -> Iterator[Any]:
    """The tables of each command that take few seconds, if what they share with its first table does, too.

    Times of SimGrid's processes are not counted in stamps, so that figures of the reference are left out.
    """
    tables_by = dict[str, list[Placed]]()
    for table in tablelist.tables_of():
        stamp = table.stamp
        if stamp is not None and stamp.kind == MADE and stamp.seconds is not None and "subramoni" not in stamp.command:
            tables_by.setdefault(stamp.command, []).append(table)
    for command, found in tables_by.items():
        seconds = [(table, table.stamp.seconds or 0) for table in found if table.stamp is not None]
        quick = [table for table, took in seconds if took < QUICK]
        if quick and command not in SHARED:
            is_long = sum(took for _, took in seconds) > SHORT
            yield pytest.param(command, quick, id=command, marks=[pytest.mark.long] if is_long else [])


def test_each_table_of_results_has_a_stamp_of_code_that_is_here() -> None:
    found = [*tablelist.tables_of()]
    assert [f"{table.page.name}:{table.line}" for table in found if table.stamp is None] == []
    modules = {table.stamp.module for table in found if table.stamp is not None} - {NONE}
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)


@pytest.mark.parametrize(("command", "quick"), [*quick_tables()])
def test_tables_that_are_made_again_are_those_of_the_lab(
    command: str, quick: list[Placed], capsys: pytest.CaptureFixture[str]
) -> None:
    stamps_of = [table.stamp for table in quick if table.stamp is not None]
    if any(digests(one.module, one.command).missing and one.data != NONE for one in stamps_of):
        pytest.skip(f"{command}: no shared data")
    assert studies.main([*command.split()[3:], "--only", *(table.name for table in quick)]) == 0
    told = capsys.readouterr().out
    for table in quick:
        _, _, after = told.partition(f"\n{table.name}\n")
        assert [*takewhile(lambda line: line.startswith("|"), after.splitlines())] == [*table.rows]


def test_a_page_has_a_stamp_under_each_of_its_tables(tmp_path: Path) -> None:
    lines = ["# Page", "| a |", "|---|", "| 1 |", "", "| b |", "|---|"]
    page = tmp_path / "page.md"
    page.write_text("\n".join(tables.stamped(lines, STAMP)))
    first, second = placed_in(page)
    assert (first.rows, first.stamp, second.stamp) == (("| a |", "|---|", "| 1 |"), STAMP, STAMP)
    page.write_text("<!-- x -->\n| a |\n|---|\n<!-- end of x -->\n```text\n| no | table |\n```\n| b | c |\n")
    assert [(one.name, one.line, one.stamp) for one in placed_in(page)] == [("x", 2, None), ("b, c", 8, None)]


CODE = {
    "studies/one.py": '"""Doc."""\nfrom . import two\nfrom topompi.machine.interference.kernels import halo\nA = 1\n',
    "studies/two.py": "def f():\n    return 1\n",
    "topompi/machine/interference/kernels/halo.py": "B = 2\n",
    "topompi/machine/jobs/simulation.py": "C = 3\n",
}


@pytest.mark.parametrize(
    ("path", "before", "after", "counts"),
    [
        ("studies/one.py", "A = 1", "A = 2", True),
        ("studies/two.py", "return 1", "return 2", True),
        ("topompi/machine/interference/kernels/halo.py", "B = 2", "B = 3", True),
        ("studies/one.py", '"""Doc."""', '"""Other."""', False),
        ("studies/two.py", "    return", "    # why\n    return ", False),
        ("topompi/machine/jobs/simulation.py", "C = 3", "C = 4", False),
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
