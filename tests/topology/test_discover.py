"""Discovery: an archive of the output of fabric tools or Slurm, damage in it, and other sources on the machine."""

import json
import re
import tarfile
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from tests.ibreports import default_report, opensm_dump, pair
from tests.ibsim import library, missing_tools, serve
from tests.support import command_line
from tests.topology.test_synthetic import described
from topompi.errors import SourceError
from topompi.topology import load
from topompi.topology.discover import other_ways
from topompi.topology.discover.slurmjob import from_addresses
from topompi.topology.synthetic import from_spec
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

ALONE = {"SLURM_STEP_NUM_TASKS": "1"}


def manifest_of(archive: Path) -> dict:
    with tarfile.open(archive) as packed:
        member = packed.extractfile("manifest.json")
        assert member is not None
        return json.load(member)


@pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())
def test_an_archive_of_a_live_fabric_is_the_fabric_with_its_routes(tmp_path: Path) -> None:
    """ibsim serves what we made, OpenSM routes it: the archive holds the same, and the routes of OpenSM's own dump."""
    made = from_spec("XGFT(2; 3,4; 1,3)")
    with serve(write_ibnetdiscover(made)) as simulation:
        dump = simulation.route()
        variables = {"LD_PRELOAD": library(), "IBSIM_SOCKNAME": simulation.socket, **ALONE}
        done = command_line("topology", "discover", "-o", tmp_path / "a.tar.xz", **variables)
        assert done.returncode == 0, done.stderr
        wanted = load(simulation.discover(), dump).routes
    found = load(tmp_path / "a.tar.xz")
    assert described(found.fabric) == described(made)
    assert found.routes is not None
    assert wanted is not None
    assert (found.routes.next_link == wanted.next_link).all()
    told = manifest_of(tmp_path / "a.tar.xz")
    assert (told["counts"]["hosts"], told["counts"]["switches"]) == (made.num_hosts, made.num_switches)
    assert all(check["passed"] for check in told["checks"].values())
    assert all(np.char.isdigit(tool["version"].replace(".", "")) for tool in told["tools"].values())
    shown = command_line("topology", "show", tmp_path / "a.tar.xz").stdout
    assert "forwarding tables of" in shown


# --- tools that do not do what they should -------------------------------------------------------------------------


def with_tools(folder: Path, report: str, tables: str) -> CompletedProcess[str]:
    """The command where the tools are these scripts."""
    (folder / "bin").mkdir()
    for name, script in (("ibnetdiscover", report), ("dump_fts", tables)):
        (folder / "bin" / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo VERSION: 9.9 && exit\n{script}\n')
        (folder / "bin" / name).chmod(0o755)
    (folder / "report").write_text(default_report(pair()))
    (folder / "tables").write_text(opensm_dump(pair()))
    words = ("topology", "discover", "-o", "a.tar.xz", "--timeout", "0.3" if "sleep" in report else "60")
    return command_line(*words, folder=folder, PATH=f"{folder}/bin:/usr/bin:/bin", **ALONE)


def test_a_fabric_that_changes_meanwhile_is_kept_and_said(tmp_path: Path) -> None:
    once = "if [ -e again ]; then sed s/left/lost/ report; else touch again; cat report; fi"
    done = with_tools(tmp_path, once, "cat tables")
    assert done.returncode == 1
    assert "problem: the fabric changed meanwhile: " in done.stderr
    check = manifest_of(tmp_path / "a.tar.xz")["checks"]["the fabric is the same before and after"]
    assert (check["passed"], check["count"]) == (False, 1)
    assert load(tmp_path / "a.tar.xz").fabric.num_hosts == 2


def test_tables_that_break_off_are_kept_with_their_problems(tmp_path: Path) -> None:
    done = with_tools(tmp_path, "cat report", "head -n 6 tables")
    assert done.returncode == 1
    assert "problem: dump_fts.txt" in done.stderr
    assert "check: it reads as a topology, and every route arrives: no, problems: " in done.stderr
    told = manifest_of(tmp_path / "a.tar.xz")
    assert told["tools"]["ibnetdiscover"]["version"] == "9.9"
    with pytest.raises(SourceError, match=r"dump_fts\.txt"):
        load(tmp_path / "a.tar.xz")


@pytest.mark.parametrize(
    ("report", "tables", "words"),
    [
        ("exec sleep 30", "", r"ibnetdiscover: expecting an end within 0.3 s \(--timeout\), got none"),
        ("cat report", "echo sorry >&2; exit 3", "dump_fts: expecting a report, got: .*; it said: sorry"),
        ("exit 0", "", "ibnetdiscover: expecting a report, got: .*; it said: nothing"),
        ("cat report", "echo hello", "expecting OpenSM forwarding tables .*, got text that begins with 'hello'"),
        (
            "echo hello",
            "cat tables",
            "topompi: ibnetdiscover.txt: expecting one of: .*; got text that begins with 'hello'",
        ),
    ],
)
def test_a_tool_that_fails_leaves_no_archive_and_other_ways(
    tmp_path: Path, report: str, tables: str, words: str
) -> None:
    done = with_tools(tmp_path, report, tables)
    assert done.returncode == 1
    assert re.search(words, done.stderr), done.stderr
    assert "topompi: instead: " in done.stderr
    assert not (tmp_path / "a.tar.xz").exists()


def test_without_tools_each_way_that_is_open_is_named_with_its_reason() -> None:
    assert "topompi topology export tcp://head:7471 " in other_ways({"TOPOMPI_SERVER": "head:7471"}, "a")[0]
    in_slurm = other_ways({"SLURM_TOPOLOGY_ADDR": "core.leaf1.n1"}, "a.tar.xz")
    assert any("srun topompi topology discover -o a.tar.xz" in way for way in in_slurm)


def test_without_a_service_and_slurm_probing_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topompi.topology.discover.elsewhere.shutil.which", lambda name: None)
    monkeypatch.setattr("topompi.topology.discover.elsewhere.SOCKET", "/nowhere")
    assert "topompi probe" in other_ways({}, "a")[0]


def test_an_address_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expecting an address that ends with its name"):
        from_addresses([("n1", ("core.n2", "switch.node"))], tmp_path)


def test_a_folder_that_is_not_there_is_said_before_the_tools_run(tmp_path: Path) -> None:
    done = command_line("topology", "discover", "-o", tmp_path / "no" / "a.tar.xz", **ALONE)
    assert (done.returncode, "running" in done.stderr) == (1, False)
    assert "a.tar.xz: expecting a folder to write it into, got none" in done.stderr
