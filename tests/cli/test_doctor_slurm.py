"""Findings of ``topompi doctor`` about Slurm; its commands are replaced by scripts that print a real Slurm's output."""

import pytest

from topompi.machine.slurm.checks import check_slurm
from topompi.topology import load_routes

CONFIG = """\
Configuration data as of 2026-11-26T13:45:00
ClusterName             = emulated
MpiDefault              = {default}
MpiParams               = (null)
SLURM_VERSION           = 22.05.8
TopologyParam           = (null)
TopologyPlugin          = {plugin}

Slurmctld(primary) at h0000 is UP
"""
TREE = """\
SwitchName=L1/0 Level=0 LinkSpeed=1 Nodes=h[0000-0001]
SwitchName=L1/1 Level=0 LinkSpeed=1 Nodes=h[0002-0003]
SwitchName=L2/0 Level=1 LinkSpeed=1 Nodes=h[0000-0003] Switches=L1/[0-1]
"""
MPI = """\
MPI plugin types are...
\tpmix
\tnone
\tcray_shasta
\tpmi2
specific pmix plugin versions available: pmix_v4
"""
JOB = {"SLURM_JOB_ID": "9", "SLURM_JOB_NODELIST": "h[0000-0003]", "SLURM_TASKS_PER_NODE": "2(x4)"}
WHAT = ("Slurm", "Slurm's topology", "srun --mpi", "Slurm's job")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Puts Slurm's commands on the path, alone there."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(plugin="topology/tree", default="none", tree=TREE, mpi=MPI, config=CONFIG, code=0):
        answers = {"config": config.format(plugin=plugin, default=default), "topology": tree}
        for name, text in {**answers, "mpi": mpi}.items():
            (tmp_path / name).write_text(text)
        scripts = {"scontrol": f'/bin/cat "{tmp_path}/$2"\nexit {code}', "srun": f'/bin/cat "{tmp_path}/mpi"'}
        for name, body in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / name).chmod(0o755)

    return put


def found(environment=None, topology=None):
    routes = None if topology is None else load_routes(topology)
    checks = list(check_slurm(environment or {}, routes))
    assert [what for what, *_ in checks] == [what for what in WHAT if what in {one for one, *_ in checks}]
    return {what: (state, words) for what, state, words in checks}


def test_where_no_slurm_is_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found() == {}


def test_a_job_without_commands_is_still_described(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    told = found({**JOB, "SLURM_TOPOLOGY_ADDR": "L2/0.L1/0.h0000", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"})
    assert told["Slurm"][0] == "absent"
    assert told["Slurm's job"][0] == "ok"
    assert "SLURM_TASKS_PER_NODE=2(x4); SLURM_TOPOLOGY_ADDR=L2/0.L1/0.h0000" in told["Slurm's job"][1]


def test_version_tree_and_interfaces_are_those_that_slurm_tells(slurm):
    slurm()
    told = found()
    assert told["Slurm"] == ("ok", "22.05.8, cluster emulated, answers")
    assert told["Slurm's topology"] == ("ok", "topology/tree, 4 nodes on 2 leaf switches")
    assert told["srun --mpi"][0] == "absent"
    assert told["srun --mpi"][1].startswith("pmi2, pmix, pmix_v4; without an option each task is an MPI program of one")
    assert "Slurm's job" not in told


@pytest.mark.parametrize(
    ("default", "mpi", "state", "words"),
    [
        ("pmix", MPI, "ok", "pmi2, pmix, pmix_v4; pmix without an option"),
        ("pmi2", "MPI plugin types are...\n\tnone\n\tpmi2\n", "absent", "pmi2: no pmix, so that Open MPI"),
        ("none", "MPI plugin types are...\n\tnone\n", "absent", "none that an MPI library speaks: no pmix"),
        ("none", "srun: MPI types are...\nsrun: pmix_v3\nsrun: none\n", "absent", "pmix_v3; without an option"),
    ],
)
def test_what_srun_offers_to_mpi_libraries_is_judged_with_its_default(slurm, default, mpi, state, words):
    slurm(default=default, mpi=mpi)
    told = found()["srun --mpi"]
    assert told[0] == state
    assert told[1].startswith(words)


@pytest.mark.parametrize("plugin", ["topology/none", "topology/default", "topology/flat", "(null)"])
def test_a_slurm_without_switches_is_told_how_to_get_them(slurm, plugin):
    slurm(plugin=plugin)
    state, words = found()["Slurm's topology"]
    assert state == "absent"
    assert "topompi topology export SOURCE -o topology.conf" in words


@pytest.mark.parametrize(
    ("topology", "state", "words"),
    [
        ("XGFT(2; 2,2; 1,2)", "ok", "; for 4 nodes it agrees with the topology above"),
        ("XGFT(2; 4,1; 1,2)", "absent", "h0000 and h0002 are on one leaf switch in the topology above, and on two for"),
        ("XGFT(2; 1,4; 1,2)", "absent", "h0000 and h0001 are on one leaf switch for Slurm, and on two in the topology"),
    ],
)
def test_leaf_switches_of_slurm_are_compared_with_those_of_the_topology(slurm, topology, state, words):
    slurm()
    told = found(topology=topology)["Slurm's topology"]
    assert told[0] == state
    assert words in told[1]


def test_a_topology_with_other_names_is_told_how_to_rename_them(slurm):
    slurm(tree=TREE.replace("h[", "node["))
    state, words = found(topology="XGFT(2; 2,2; 1,2)")["Slurm's topology"]
    assert state == "absent"
    assert "none of which the topology above has: rename them" in words


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SLURM_JOB_NODELIST": "h[0000-0004]"}, "expecting SLURM_TASKS_PER_NODE for 5 hosts, got 4"),
        ({"SLURM_JOB_NODELIST": "h[0000-"}, "expecting"),
        ({"SLURM_TOPOLOGY_ADDR": "a.b.x", "SLURMD_NODENAME": "h0001"}, "SLURM_TOPOLOGY_ADDR of h0001: expecting"),
    ],
)
def test_variables_of_the_job_that_contradict_each_other_are_a_fault(slurm, variables, words):
    slurm()
    *_, (what, state, says) = check_slurm({**JOB, **variables})
    assert (what, state) == ("Slurm's job", "fault")
    assert words in says


def test_a_step_on_fewer_nodes_than_the_job_is_no_fault(slurm):
    slurm()
    step = {"SLURM_STEP_ID": "0", "SLURM_TASKS_PER_NODE": "1(x2)"}
    assert found({**JOB, **step})["Slurm's job"][0] == "ok"


def test_nodes_of_the_job_that_no_switch_has_are_named(slurm):
    slurm(tree=TREE.replace("0003]", "0002]"))
    state, words = found(JOB)["Slurm's topology"]
    assert (state, words) == ("absent", "1 of 4 nodes of this job are in none of its switches: h0003, ...")


def test_a_controller_that_does_not_answer_stops_no_job(slurm):
    """A script that begins with ``topompi doctor || exit 1`` goes on while slurmctld is restarted."""
    slurm(config="slurm_load_ctl_conf error: Unable to contact slurm controller\n", code=1)
    for environment in ({}, JOB):
        assert found(environment)["Slurm"][0] == "absent"


def test_a_job_whose_hosts_are_not_told_is_not_stopped(slurm):
    slurm()
    state, words = found({**JOB, "SLURM_JOB_NODELIST": ""})["Slurm's job"]
    assert (state, words) == ("absent", "9: expecting SLURM_JOB_NODELIST, got none: pass Slurm's variables on")
