"""The job's view of the network."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.support import ROOT
from topompi.errors import FabricError, HostError
from topompi.topology import FabricBuilder, TopologyInterface, load
from topompi.topology.hostnames import find_hosts


@pytest.fixture(scope="module")
def fat_tree():
    """64 hosts: 4 a leaf, 4 leaves a pod, 4 pods; h0000-h0003 on the first leaf."""
    return load("xgft:4,4,4;1,2,2").routes


def test_levels_are_pods_leaves_and_hosts(fat_tree):
    names = ["h0000", "h0016", "h0001", "h0004", "h0000", "h0016", "h0001", "h0004"]
    view = TopologyInterface.place(names, fat_tree)
    assert view.hosts == ("h0000", "h0016", "h0001", "h0004")
    assert view.hop_matrix.tolist() == [[0, 5, 1, 3], [5, 0, 5, 5], [1, 5, 0, 3], [3, 5, 3, 0]]
    assert view.get_network_depth() == 3
    assert [view.num_switch_clusters_at_depth(depth) for depth in range(4)] == [1, 2, 3, 4]
    assert [(level.name, level.cluster.tolist()) for level in view.levels] == [
        ("within 3 hops", [0, 1, 0, 0, 0, 1, 0, 0]),
        ("within 1 hop", [0, 1, 0, 3, 0, 1, 0, 3]),
        ("host", [0, 1, 2, 3, 0, 1, 2, 3]),
    ]
    assert [level.leaders.tolist() for level in view.levels] == [[0, 1], [0, 1, 3], [0, 1, 2, 3]]
    assert view.get_avg_hosts_per_leaf_switch() == pytest.approx(4 / 3)
    same = [view.connected_switch_cluster_at_depth(rank, 2) for rank in (0, 2, 4)]
    assert len(set(same)) == 1
    assert view.connected_switch_cluster_at_depth(3, 2) != same[0]


def test_levels_that_say_nothing_are_left_out(fat_tree):
    assert TopologyInterface.place(["h0000", "h0001", "h0002"], fat_tree).levels == ()
    assert TopologyInterface.place(["h0000"] * 3, fat_tree).levels == ()
    assert [level.name for level in TopologyInterface.place(["h0000", "h0000", "h0001"], fat_tree).levels] == ["host"]
    pods = TopologyInterface.place(["h0000", "h0001", "h0016", "h0017"], fat_tree).levels
    assert [(level.name, level.cluster.tolist()) for level in pods] == [("within 1 hop", [0, 0, 2, 2])]


def test_a_job_on_one_rank_and_host_has_no_levels(fat_tree):
    view = TopologyInterface.place(["h0063"], fat_tree)
    assert (view.get_network_depth(), view.levels, view.hop_matrix.tolist()) == (0, (), [[0]])
    assert view.get_num_hosts_sharing_links() == 0


def test_domains_inside_hosts_follow_the_hosts():
    view = TopologyInterface.place(["a", "a", "b", "b", "b", "b"]).with_domains([("package", [0, 0, 0, 1, 0, 1])])
    assert [(level.name, level.cluster.tolist()) for level in view.levels] == [
        ("host", [0, 0, 2, 2, 2, 2]),
        ("package", [0, 0, 2, 3, 2, 3]),
    ]


def test_without_routes_hosts_are_one_flat_level():
    view = TopologyInterface.place(["a", "b", "a"])
    assert view.hop_matrix.tolist() == [[0, 1], [1, 0]]
    assert [level.cluster.tolist() for level in view.levels] == [[0, 1, 0]]
    assert view.get_network_path_matrix().shape == (2, 2, 0)
    assert view.get_hosts_sharing_links() == ()
    assert np.isnan(view.delay_matrix("rate")[0, 1])


def test_sharing_links_counts_the_jobs_hosts_only():
    """On a 5:4 leaf hosts 0 and 16 share a link, but only if the job has both and something elsewhere."""
    routes = load("XGFT(2; 20,4; 1,8; 1,2)").routes
    assert TopologyInterface.place(["h0000", "h0016", "h0020"], routes).get_hosts_sharing_links() == ("h0000", "h0016")
    assert TopologyInterface.place(["h0000", "h0015", "h0020"], routes).get_num_hosts_sharing_links() == 0
    assert TopologyInterface.place(["h0000", "h0016"], routes).get_num_hosts_sharing_links() == 0


def test_path_matrix_names_links_of_the_jobs_part(fat_tree):
    view = TopologyInterface.place(["h0000", "h0063", "h0001"], fat_tree)
    paths, fabric = view.get_network_path_matrix(), view.routes.fabric
    assert paths.shape == (3, 3, 6)
    vertices = [fabric.vertex_id(fabric.link_target[link]) for link in paths[0, 1]]
    assert vertices[-1] == fabric.adapter_ids[1]
    assert (paths[0, 2] >= 0).sum() == 2
    assert fabric.num_links < fat_tree.fabric.num_links


def test_delay_matrix_by_rate_is_the_slower_hosts():
    routes = load("glenn").routes
    rates = routes.fabric.link_rate[routes.fabric.adapter_uplink]
    slow, fast = int(np.argmin(rates)), int(np.argmax(rates))
    assert rates[slow] < rates[fast]
    names = [routes.fabric.hosts[slow], routes.fabric.hosts[fast]]
    delay = TopologyInterface.place(names, routes).delay_matrix("rate")
    np.testing.assert_allclose(delay, [[0, 1 / rates[slow]], [1 / rates[slow], 0]])
    with pytest.raises(ValueError, match="expecting by='hops' or by='rate'"):
        TopologyInterface.place(names, routes).delay_matrix("colour")


def test_hosts_that_are_not_in_the_fabric_are_named_or_make_the_level_flat(fat_tree):
    names = ["h0000", "elsewhere", "h0004"]
    with pytest.raises(
        HostError, match=r"expecting some of its 64 hosts \(h0000, h0001, h0002, ...\), but 1 of 3 are not: else"
    ):
        TopologyInterface.place(names, fat_tree)
    view = TopologyInterface.place(names, fat_tree, missing="flat")
    assert view.routes is None
    assert "1 host is not in" in view.source
    for ranks, words in ((1, "1 rank on 1 host, "), (2, "2 ranks on 1 host, ")):
        assert TopologyInterface.place(["h0000"] * ranks, fat_tree).describe().startswith(words)


def test_depths_and_ranks_are_checked(fat_tree):
    view = TopologyInterface.place(["h0000", "h0063"], fat_tree)
    with pytest.raises(ValueError, match=r"expecting depth in range\(2\), got 2"):
        view.num_switch_clusters_at_depth(2)
    with pytest.raises(ValueError, match=r"expecting rank in range\(2\), got -1"):
        view.connected_switch_cluster_at_depth(-1, 0)


def test_short_and_full_names_find_each_other():
    builder = FabricBuilder("names")
    builder.add_switch("s")
    for name in ("n1.site", "n2", "n3.x", "n3.y"):
        builder.add_adapter(name, name)
        builder.add_cable(name, "s")
    fabric = builder.build()
    assert find_hosts(fabric, ["n1", "n2.site", "n3.x", "n3", "n4", "n1.other"]).tolist() == [0, 1, 2, -1, -1, 0]


def test_builder_refuses_contradictions_with_their_place():
    builder = FabricBuilder("contradiction")
    builder.add_switch("s", where="f:1")
    with pytest.raises(FabricError, match="f:2: switch s appears twice"):
        builder.add_switch("s", where="f:2")
    with pytest.raises(FabricError, match="f:3: host s appears twice"):
        builder.add_adapter("s", "h", where="f:3")
    builder.add_link("s", "t", 1, where="f:4")
    with pytest.raises(FabricError, match="f:5: port 1 of s has two links, the other one at f:4"):
        builder.add_link("s", "u", 1, where="f:5")
    with pytest.raises(FabricError, match="a link of s ends at t, which the source does not list"):
        builder.build()
    with pytest.raises(FabricError, match="nothing: no switch found"):
        FabricBuilder("nothing").build()


@pytest.mark.parametrize("module", ["topompi.topology", "topompi.schedules", "topompi.mapping", "topompi.cli"])
def test_the_pure_parts_do_not_import_mpi4py(module):
    code = f"import sys\nfrom {module} import *\nsys.exit('mpi4py' in sys.modules)"  # also what is imported late
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


def test_a_pickle_holds_what_a_view_was_made_of_and_not_what_followed(fat_tree):
    view = TopologyInterface.place(fat_tree.fabric.hosts, fat_tree)
    before = len(pickle.dumps(view))
    expected = view.hop_matrix, view.host_routes.tables.every_path, view.routes.next_link
    assert len(pickle.dumps(view)) < 1.1 * before  # columns of the fabric, nothing for pairs of hosts
    again = pickle.loads(pickle.dumps(view))
    for found, wanted in zip((again.hop_matrix, again.host_routes.tables.every_path), expected, strict=False):
        assert np.array_equal(found, wanted)
