"""The part of a topology that some ranks see."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.topology import TopologyInterface, load
from topompi.views.part import restricted

ROUTES = load("xgft:2,2,2;1,1,1").routes


@examples(60)
@given(st.data())
def test_a_part_of_a_topology_is_that_of_its_ranks_alone(data):
    """A restricted interface equals one placed anew: hosts, distances, levels, and levels inside hosts."""
    size = data.draw(st.integers(1, 12))
    hosts = data.draw(st.lists(st.sampled_from(ROUTES.fabric.hosts), min_size=size, max_size=size))
    ranks = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    packages = data.draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size))
    whole = TopologyInterface.place(hosts, ROUTES, source="s", virtual=True).with_domains([("package", packages)])
    part = restricted(whole, np.array(ranks))
    alone = TopologyInterface.place([hosts[rank] for rank in ranks], ROUTES, source="s", virtual=True)
    alone = alone.with_domains([("package", [packages[rank] for rank in ranks])])
    assert part.hosts == alone.hosts
    assert part.describe() == alone.describe()
    assert part.rank_host.tolist() == alone.rank_host.tolist()
    assert part.hop_matrix.tolist() == alone.hop_matrix.tolist()
    assert part.get_hosts_sharing_links() == alone.get_hosts_sharing_links()
    assert [(one.name, one.cluster.tolist()) for one in part.levels] == [
        (one.name, one.cluster.tolist()) for one in alone.levels
    ]


def test_the_whole_is_no_copy():
    whole = TopologyInterface.place(["a", "b", "a"])
    assert restricted(whole, np.arange(3)) is whole
    assert restricted(whole, np.array([2, 0])).hosts == ("a",)
