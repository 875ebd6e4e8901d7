"""A command whose input is missing fails: it ends with status 1 or 2, says so in one line, and writes nothing."""

from pathlib import Path

import pytest

from tests.support import command_line
from tests.support.counts import commands

TREE = "xgft:2,2;1,2"
# Each command, with words of which NONE is a file or folder that does not exist, and OUT a file that it would write.
WORDS = {
    "schedule": "bcast --topology NONE",
    "why": "bcast 8 --topology NONE",
    "doctor": "--topology NONE",
    "topology draw": "NONE --output OUT.svg",
    "topology export": "NONE --output OUT.json",
    "topology inside": "NONE",
    "topology serve": "--topology NONE --listen unix:OUT",
    "topology query": "health --server unix:NONE",
    "topology links": "--topology NONE",
    "topology diff": f"{TREE} NONE",
    "topology show": "NONE",
    "topology route": "h0000 h0001 --topology NONE",
    "map": f"NONE --topology {TREE}",
    "profile show": f"NONE --topology {TREE}",
    "profile advise": f"NONE --topology {TREE}",
    "profile export": "NONE --output OUT.npz",
    "export": f"launch-kit NONE --topology {TREE} --output OUT",
    "slurm select": "--nodes 2 --topology NONE",
    "slurm bridge": "--topology NONE --once",
    "slurm page": "--topology NONE --once --output OUT",
    "slurm place": "NONE --hosts n[1-2] --slots 2 --output OUT",
    "jobs simulate": "NONE --topology leaves=4x2",
    "jobs allocate": "2 --topology leaves=4x2x2 --running NONE",
    "jobs check": "NONE --topology leaves=4x2x2",
    "jobs characterise": f"NONE --topology {TREE}",
    "jobs lanes": f"NONE --topology {TREE} --output OUT",
    "jobs price": "NONE NONE --rate 1",
    "jobs replay": f"NONE --topology {TREE}",
    "jobs worth": "NONE --speedups drawn:2:1",
    "colocate measure": "NONE -o OUT",
    "colocate profile": "NONE",
    "colocate predict": "NONE",
    "colocate pair": "NONE",
    "colocate place": "NONE -n 2",
}
KEEPS = {"colocate measure"}  # writes what it measured, and a journal, however it ends
# Commands without an input, and those that run MPI or wait for programs, which the tests of MPI make fail.
OTHERS = {"tune", "probe", "demo", "topology discover", "profile record", "shutter run"}


def test_every_command_is_made_to_fail_here_or_has_a_reason_not_to() -> None:
    assert {*commands()} == {*WORDS, *OTHERS}


@pytest.mark.parametrize("name", WORDS)
def test_a_command_whose_input_is_missing_ends_with_1_or_2_and_writes_nothing(name: str, tmp_path: Path) -> None:
    made = {"NONE": str(tmp_path / "none"), "OUT": str(tmp_path / "out" / "made")}
    (tmp_path / "out").mkdir()
    words = [made["NONE"] if word == "NONE" else word.replace("OUT", made["OUT"]) for word in WORDS[name].split()]
    done = command_line(*name.split(), *words, PATH=str(tmp_path))  # without Slurm's commands
    assert done.returncode in (1, 2), done.stdout
    assert str(tmp_path / "none") in done.stderr + done.stdout or name == "topology query"
    assert name in KEEPS or not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
