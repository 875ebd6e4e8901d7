"""Studies of published work: one command per source, and tables between marks of their pages."""

import re
from pathlib import Path

import pytest

from studies.__main__ import SOURCES, main
from studies.interference import waits
from studies.pollard import cli as pollard
from studies.stamps import cells_of, stamp_of
from studies.tablelist import tables_of
from studies.tables import fill, table_lines
from tests.support import ROOT
from tests.workloads import random_workload
from topompi.errors import BenchmarkError
from topompi.machine.jobs.study import POLLARD
from topompi.views import read_cluster

LAB = ROOT / "docs" / "lab"


def rows_of(name: str) -> list[list[str]]:
    """The cells of a table of docs/lab, its head first."""
    (found,) = (table.rows for table in tables_of() if table.name == name)
    head, _, *rows = map(cells_of, found)
    return [head, *rows]


def test_a_table_takes_the_place_of_the_one_between_its_marks_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\n<!-- b -->\nkept\n<!-- end of b -->\n")
    stamp = stamp_of("python -m studies a", "studies.routing")
    fill(page, "a", [*table_lines(["x", "y"], [(1, r"\\1")])], stamp)
    text = page.read_text()
    table = "| x | y |\n| --- | --- |\n| 1 | \\\\1 |\n"
    assert text.startswith(f"before\n<!-- a -->\n{table}{stamp}\n<!-- end of a -->\n<!-- b -->\nkept")
    page.write_text("<!-- c -->\n")
    with pytest.raises(BenchmarkError, match="expecting at most one pair of marks <!-- c -->"):
        fill(page, "c", [], stamp)


def test_a_table_without_marks_comes_back_from_its_file(tmp_path: Path) -> None:
    page, stamp = tmp_path / "page.md", stamp_of("python -m studies a", "studies.routing", seconds=3)
    page.write_text("text\n")
    lines = [*table_lines(["x", "y, z"], [('1 "a"', ""), ("2", "`b`, c")])]
    fill(page, "a b", lines, stamp)
    (found,) = tables_of(tmp_path)
    assert (found.name, found.page) == ("a b", tmp_path / "data" / "a-b.csv")
    assert (found.rows, found.stamp) == (tuple(lines), stamp)
    assert page.read_text() == "text\n"


def test_each_file_of_a_table_is_linked_by_one_page_and_each_link_has_its_file() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in LAB.glob("*.md"))
    assert sorted(re.findall(r"\]\(data/([^)]+)\)", text)) == sorted(file.name for file in (LAB / "data").iterdir())


def test_a_load_of_pollard_has_a_cell_for_each_scenario_and_isolation_waits_longer() -> None:
    cells = pollard.row_of("small", [pollard.drawn(seed, 0.85, jobs=400) for seed in range(2)], pollard.CAB)
    assert len(cells) == 2 + len(POLLARD) == len(rows_of("pollard")[0])
    waits = dict(zip(POLLARD, (float(cell.partition(" ")[0]) for cell in cells[1:]), strict=False))
    assert waits["TA"] >= waits["TO"]


def test_a_source_that_is_not_here_is_refused_with_those_that_are(capsys) -> None:
    assert main(["nobody"]) == 2
    told = capsys.readouterr().err
    assert "expecting a source, got nobody" in told
    assert all(f"  {name} " in told for name in SOURCES)
    assert main(["subramoni", "9.9"]) == 1
    assert "python -m studies: subramoni: expecting some of 3.1, " in capsys.readouterr().err


def test_the_waits_of_a_policy_without_shared_links_are_those_as_logged() -> None:
    machine = read_cluster("xgft:4,4;1,2@rate=4xQDR")
    jobs = random_workload(1, 120, 12)
    rows = {row[0]: row[1:] for row in waits.rows_of(jobs, machine, ("first", "disjoint"), range(2))}
    wait, by_links, response, response_by_links, added, slowed, _ = rows["`disjoint`"]
    assert (wait, response) == (by_links, response_by_links)
    assert (added, slowed) == ("0.0 %", "0.0 %")
    assert rows["`first`"][5] != "0.0 %"
