"""The files that ``topompi slurm bridge --setup`` makes for an administrator."""

import sys

import pytest

from topompi.machine.slurm.setup import guard, partition_lines, service, steps
from topompi.machine.slurm.view import BridgeRules

RULES = BridgeRules(door="wait", run="placed", usual="batch")


def test_the_partitions_have_the_limits_of_the_usual_one_and_a_higher_tier_for_placed_jobs():
    told = {"Nodes": "n[0-3]", "MaxTime": "08:00:00", "MaxNodes": "UNLIMITED", "PriorityTier": "5", "QoS": "N/A"}
    door, run = partition_lines(RULES, told).splitlines()
    kept = "Nodes=n[0-3] MaxTime=08:00:00 OverSubscribe=EXCLUSIVE State=UP"
    assert door == f"PartitionName=wait {kept} PriorityTier=5 Default=YES"
    assert run == f"PartitionName=placed {kept} PriorityTier=15"


def test_without_an_answer_of_slurm_the_partitions_have_all_nodes():
    assert all(" Nodes=ALL OverSubscribe=EXCLUSIVE" in line for line in partition_lines(RULES, {}).splitlines())


def test_the_guard_and_the_steps_name_the_partitions():
    assert 'word == "placed"' in guard(RULES)
    assert "PartitionName=wait State=UP" in steps(RULES)


def test_the_unit_opens_the_door_after_any_end_and_is_restarted():
    lines = service(RULES, ["/bin/bridge"]).splitlines()
    assert any(line.startswith("ExecStopPost=") and line.endswith("PartitionName=wait State=UP") for line in lines)
    assert [line for line in lines if line.startswith("Restart=")][-1] == "Restart=always"  # the last one counts


def test_files_are_written_and_the_unit_can_start_anywhere(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho PartitionName=all MaxTime=08:00:00\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (tmp_path / "fabric.json").write_text("{}")
    said = command("slurm", "bridge", "--setup", "--topology", "fabric.json", "--partitions", "wait", "-o", "made")
    assert said.code == 0, said.err
    assert "MaxTime=08:00:00" in (tmp_path / "made" / "slurm.conf.lines").read_text()
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "STEPS.txt",
        "job_submit.lua",
        "slurm.conf.lines",
        "topompi-bridge.service",
    ]
    unit = (tmp_path / "made" / "topompi-bridge.service").read_text()
    own = f"slurm bridge --policy isolated --topology {tmp_path}/fabric.json --partitions wait,run,all"
    assert f"ExecStart={sys.executable} -P -m topompi {own}\n" in unit


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo error: no controller >&2; exit 1", "got exit code 1: error: no controller"),
        ("echo Partition all not found; exit 1", "got exit code 1: Partition all not found"),
        ("true", "expecting the partition all (--partitions), got none"),
    ],
)
def test_without_the_usual_partition_nothing_is_written(command, tmp_path, monkeypatch, script, words):
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    said = command("slurm", "bridge", "--setup", "-o", tmp_path / "made")
    assert (said.code, said.out) == (1, "")
    assert words in said.err
    assert not (tmp_path / "made").exists()
