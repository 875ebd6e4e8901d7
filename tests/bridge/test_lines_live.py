"""Each command line of Slurm in the documents runs on a real Slurm, and topompi reads its output."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from osu_like_bench.emulate import Emulated
from tests.slurm import ACCOUNTING, AccountedSlurm, SlurmCluster, skip_without_slurm, slurm_cluster  # noqa: F401
from tests.support import ROOT, command_line
from topompi.inputs.slurm.running import read_running
from topompi.machine.jobs import read_workload

_LINE = re.compile(r"^(?:\w+=\S+ )?(sacct|squeue|sinfo|scontrol show topology)\b[^\n`]* > \S+$", re.M)
PAGES = ["jobs", "howto/price-jobs", "interference", "replay", "slurm", "cluster"]
TOPOMPI = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-m", "topompi"]


def lines_of(page: str) -> list[str]:
    """The command lines of Slurm in a page that write a file, in blocks and in the text."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [match[0] for part in re.split("`+(?:sh\n)?", text) for match in _LINE.finditer(part.strip())]


LINES = sorted({line for page in PAGES for line in lines_of(page)})


def test_every_page_that_takes_an_output_of_slurm_has_the_line_that_makes_it() -> None:
    assert [page for page in PAGES if not lines_of(page)] == []
    assert {line.split()[0] for line in LINES} >= {"squeue", "sinfo", "scontrol"}


@contextmanager
def one_job(slurm: SlurmCluster) -> Iterator[str]:
    """A job that runs on two hosts, and one that waits."""
    submit = ["sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--time=2", "--wrap=sleep 60"]
    jobs = [slurm.run([*submit, f"--nodes={nodes}"]).stdout.strip() for nodes in (2, 4)]
    try:
        slurm.run(["timeout", "20", "sh", "-c", f"until squeue -h -j {jobs[0]} -o %N | grep -q h; do sleep 0.2; done"])
        yield jobs[0]
    finally:
        slurm.run(["scancel", *jobs])


def test_topompi_reads_what_each_line_of_squeue_sinfo_and_scontrol_prints(slurm: SlurmCluster, tmp_path: Path) -> None:
    with one_job(slurm) as job:
        (tmp_path / "tree").write_text(slurm.run(["scontrol", "show", "topology"]).stdout)
        where = ("--topology", tmp_path / "tree")
        for line in [*LINES, *(f"{one} --{form} > f" for one in ("squeue", "sinfo") for form in ("json", "yaml"))]:
            if "sacct" in line:
                continue
            command = line.rpartition(" > ")[0]
            made = slurm.run(["sh", "-c", command])
            assert (made.returncode, made.stderr) == (0, ""), line
            (tmp_path / "made").write_text(made.stdout)
            if command.startswith("squeue"):
                told = command_line("jobs", "check", tmp_path / "made", *where)
                assert re.search(rf"^ {job} +2 ", told.stdout, re.M), (line, told)
            elif command.startswith("sinfo"):
                told = command_line("jobs", "allocate", 2, "--closed", tmp_path / "made", *where)
                assert told.stdout.startswith("h[0002-0003]"), (line, told)
            else:
                assert command_line("topology", "show", tmp_path / "made").returncode == 0
        for words in (["check", "--slurm"], ["allocate", "2", "--slurm"]):
            told = slurm.run([*TOPOMPI, "jobs", *words])
            assert told.returncode == 0, told.stderr
            assert ("1 job, 0 pairs" if words[0] == "check" else "h[0002-0003]") in told.stdout


@pytest.mark.long  # because of its own Slurm with a database
def test_topompi_reads_what_each_line_of_sacct_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_slurm(ACCOUNTING)
    lines = [line.rpartition(" > ")[0] for line in LINES if "sacct" in line]
    with tempfile.TemporaryDirectory(
        dir="/run"
    ) as folder:  # Slurm's sockets are in the folder: its path has to be short
        monkeypatch.setenv("TOPOMPI_EMULATE_STATE", folder)
        with Emulated("2x2") as network, AccountedSlurm(network) as slurm:
            slurm.run(["sbatch", "--wait", "--nodes=2", "--output=/dev/null", "--wrap=sleep 1"])
            for line in [*lines, "sacct --json", "sacct --yaml", "sacct --allclusters --json"]:
                command = f"until {line} | grep -q COMPLETED; do sleep 0.2; done; {line}"
                made = slurm.run(["timeout", "30", "sh", "-c", command])
                assert (made.returncode, made.stderr) == (0, ""), line
                (tmp_path / "log").write_text(made.stdout)
                jobs = read_workload(tmp_path / "log")
                assert (jobs.number.tolist(), jobs.nodes.tolist()) == ([1], [2]), line
                assert jobs.run[0] >= 1
            (tmp_path / "now").write_text(slurm.run(["squeue", "--clusters=emulated"]).stdout)
            assert read_running(tmp_path / "now", cluster="emulated") == []
