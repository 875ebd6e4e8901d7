"""``topompi demo`` as a new user runs it, and the recorded graph that the demo maps."""

import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.support import ROOT, command_line
from topompi.cli.setup.demo import demo
from topompi.netsim.packets.running import Engine

PICTURES = ["job.html", "job.svg", "given.html", "mapped.html"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints and leaves, where nothing but Python is on the path and nobody has set anything."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    command = [sys.executable, "-m", "topompi", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, env=environment)
    return done, folder / "topompi-demo"


def test_the_demo_needs_no_mpi_and_leaves_its_pictures(shown):
    done, folder = shown
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == sorted(PICTURES)
    assert done.stdout.splitlines()[-1] == "your job: none here (no Slurm job); next command: topompi doctor"
    ElementTree.parse(folder / "job.svg")
    assert "ranks" in (folder / "job.svg").read_text() or ": 0-1" in (folder / "job.svg").read_text()


def test_the_mapped_exchange_is_faster_predicted_and_simulated_and_neither_beats_its_busiest_link(shown):
    rows = dict(re.findall(r"^ +(given|mapped) +([\d.]+ ms +[\d.]+ ms)", shown[0].stdout, re.MULTILINE))
    times = {name: [float(one) for one in re.findall(r"[\d.]+", row)] for name, row in rows.items()}
    assert times["mapped"][0] < times["given"][0]
    assert times["mapped"][1] < times["given"][1]
    assert all(predicted <= simulated for predicted, simulated in times.values())
    said = float(re.search(r"is ([\d.]+)x as fast", shown[0].stdout)[1])
    assert said == pytest.approx(times["given"][1] / times["mapped"][1], rel=0.04)


def test_collectives_are_compared_with_the_faster_library_whoever_wins(shown):
    rows = re.findall(r"^ +(allreduce|bcast|alltoall), (?:1M|64K) +(.+)$", shown[0].stdout, re.MULTILINE)
    found = {}
    for collective, cells in rows:
        first, second, ours = (float(one) for one in re.findall(r"([\d.]+) ms", cells))
        found[collective] = float(re.search(r"([\d.]+)x", cells)[1])
        assert found[collective] == pytest.approx(min(first, second) / ours, rel=0.02)
        assert cells.rstrip().endswith("x") == (found[collective] > 1)
    assert list(found) == ["allreduce", "bcast", "alltoall"]
    assert found["allreduce"] == max(found.values()) > 2
    assert found["bcast"] > 2
    model = "flows" if Engine is None else "packets"
    assert f"simulated as {model}" in shown[0].stdout


def test_without_c_the_collectives_are_simulated_as_flows(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("topompi.netsim.packets.running.Engine", None)
    demo(tmp_path)
    assert "simulated as flows" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_demo_installs_the_package_alone_and_make_venv_the_rest():
    def steps(target: str) -> str:
        command = ["make", "--dry-run", "--always-make", target]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=True).stdout

    assert re.findall(r"pip .*install (.+)", steps("demo")) == ["-e ."]
    assert "topompi[mpi,plot,test,lint,docs]" in steps("test")
    assert not re.findall(r"pip .*install (.+)", steps("wheel"))


def test_in_a_slurm_job_the_demo_ends_with_the_command_for_it(tmp_path):
    done = command_line("demo", "-o", "pictures", folder=tmp_path, SLURM_JOB_NODELIST="n[1-4]")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("your job: n[1-4]; next command: scontrol show topology > topology.txt")
