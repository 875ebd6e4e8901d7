"""``topompi slurm select``: idle nodes for a job by the routes."""

import json
import re

import numpy as np
import pytest

from tests.support import command_line
from topompi.inputs.hostlist import compress
from topompi.machine.jobs import AllocationError
from topompi.machine.slurm.selection import select
from topompi.topology import TopologyInterface, load
from topompi.views.cluster import cluster_of

SPEC = "xgft:4,4;1,2"  # 4 leaf switches of 4 hosts and 2 links up
ROUTES = load(SPEC).routes
CLUSTER = cluster_of(ROUTES)
HOSTS = CLUSTER.hosts


def sharing(nodes):
    return TopologyInterface.place(nodes, ROUTES).get_num_hosts_sharing_links()


@pytest.mark.parametrize(("size", "leaves", "shared"), [(3, 1, 0), (4, 1, 0), (5, 3, 0), (8, 4, 0), (9, 3, 9)])
def test_a_leaf_suffices_or_else_no_two_nodes_share_a_link_while_that_is_possible(size, leaves, shared):
    found = select(size, CLUSTER, HOSTS)
    assert (len(found.nodes), found.leaves, len(found.sharing)) == (size, leaves, sharing(found.nodes))
    assert (sharing(found.nodes) > 0) == (shared > 0)


def test_only_idle_nodes_of_the_cluster_are_chosen():
    idle = [host for number, host in enumerate(HOSTS) if number % 4] + ["elsewhere"]
    found = select(6, CLUSTER, idle)
    assert set(found.nodes) <= set(idle)
    assert (found.idle, sharing(found.nodes)) == (12, 0)
    assert select(13, CLUSTER, idle).nodes == ()


def test_the_user_s_own_list_is_kept_and_its_shared_links_are_told():
    found = select(4, CLUSTER, HOSTS, wanted=[HOSTS[0], HOSTS[2], HOSTS[5], HOSTS[9]])
    assert found.nodes == (HOSTS[0], HOSTS[2], HOSTS[5], HOSTS[9])
    assert set(found.sharing) == {HOSTS[0], HOSTS[2]}
    assert found.why == "your own list; 3 leaf switches; 2 nodes share links into their leaf switches"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [(["x"], "expecting 2 nodes of"), (HOSTS[:3], "got 3 nodes"), ((HOSTS[0], HOSTS[0]), "got 1 nodes")],
)
def test_a_list_that_does_not_fit_is_refused(wanted, words):
    with pytest.raises(AllocationError, match=re.escape(words)):
        select(2, CLUSTER, HOSTS, wanted=wanted)


def test_without_idle_nodes_of_the_cluster_nothing_is_chosen():
    with pytest.raises(AllocationError, match="expecting idle nodes of"):
        select(2, CLUSTER, ["elsewhere"])


def test_the_command_prints_a_host_list_for_slurm_and_reads_sinfo(tmp_path):
    states = "".join(f"{host} {'idle' if number % 2 else 'alloc'}\n" for number, host in enumerate(HOSTS))
    (tmp_path / "sinfo.txt").write_text(states)
    words = ["slurm", "select", "-N", "4", "--topology", SPEC, "--idle", str(tmp_path / "sinfo.txt")]
    done = command_line(*words)
    assert done.returncode == 0, done.stderr
    told = json.loads(command_line(*words, "--json").stdout)
    assert len(told["nodes"]) == 4
    assert np.isin(told["nodes"], HOSTS[1::2]).all()
    assert done.stdout == f"{compress(told['nodes'])}\n"
    assert "other jobs' links are not considered; for that use topompi jobs allocate -p disjoint" in done.stderr


def test_without_slurm_the_command_says_what_to_give(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    done = command_line("slurm", "select", "-N", "2")
    assert done.returncode == 1
    assert "scontrol: expecting switches, got no scontrol on this machine" in done.stderr


def test_options_of_a_source_are_refused_without_one():
    done = command_line("slurm", "select", "-N", "2", "--rails", "host=h*")
    assert (done.returncode, "expecting --topology beside --lfts, --rails" in done.stderr) == (1, True)


def test_slurm_and_files_are_not_taken_together(tmp_path):
    (tmp_path / "jobs").write_text("a n1\n")
    both = command_line(
        "jobs", "allocate", "2", "--topology", "leaves=4x4x1", "--running", tmp_path / "jobs", "--slurm"
    )
    assert "expecting --slurm, or --running and --closed, got both" in both.stderr
    for words in ([tmp_path / "jobs", "--slurm"], []):
        done = command_line("jobs", "check", *words, "--topology", "leaves=4x4x1")
        assert (done.returncode, "expecting a file of running jobs, or --slurm" in done.stderr) == (1, True)
