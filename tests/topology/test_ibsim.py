"""A live fabric: ibsim serves it, OpenSM routes it, and we read both as the InfiniBand tools do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.ibsim import Simulation, missing_tools, serve
from tests.topology.test_synthetic import described
from topompi.inputs import open_inputs
from topompi.topology.discovery import Discovery, Report
from topompi.topology.fabric import Fabric
from topompi.topology.routes import Routes
from topompi.topology.sources import ibnetdiscover, tables
from topompi.topology.synthetic import from_spec
from topompi.topology.synthetic.blueprint import Blueprint, Cables, cables
from topompi.topology.synthetic.trees import draw_fat_tree
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())

PAIRS = 100


def mixed_oversubscription() -> Fabric:
    """Two trees, one slimmed 2:1, the other 3:4, whose spines are joined by two cables a pair."""
    first = draw_fat_tree((4, 3), (1, 2), (1, 1))
    both = first.combined_with(draw_fat_tree((3, 4), (1, 2), (1, 2), hosts=11, rate=2e9))
    spine, cable = np.ogrid[:2, :2]
    first_spines = both.num_hosts + len(first.switch_names) - 2
    second_spines = both.num_hosts + len(both.switch_names) - 2
    joint = cables(first_spines + spine, second_spines + spine, 4 + cable, 9 + cable, 2e9)
    return Blueprint(both.num_hosts, both.switch_names, Cables.join([both.cables, joint])).build("mixed")


@dataclass(frozen=True)
class Routed:
    """A fabric as it was made, as the tools report it, and what serves it."""

    made: Fabric
    simulation: Simulation
    discovery: Discovery
    routes: Routes

    def base_lids(self) -> dict[str, int]:
        """The first LID of each adapter and switch."""
        lids: dict[str, int] = {}
        for lid, identity in sorted(self.discovery.lids.items()):
            lids.setdefault(identity, lid)
        return lids


@pytest.fixture(
    scope="module",
    params=[
        ("XGFT(3; 4,4,4; 1,2,2)", 0),
        ("mixed", 0),
        ("dragonfly:3,2,2,5", 0),
        ("XGFT(3; 3,3,3; 1,2,2)", 1),
    ],
    ids=lambda param: f"{param[0]} lmc {param[1]}",
)
def routed(request: pytest.FixtureRequest) -> Iterator[Routed]:
    """A fabric served by ibsim and routed by OpenSM, with the given LMC."""
    spec, lmc = request.param
    made = mixed_oversubscription() if spec == "mixed" else from_spec(spec)
    with serve(write_ibnetdiscover(made)) as simulation:
        dump = simulation.route("-l", str(lmc))
        discovery = ibnetdiscover.read(open_inputs(simulation.discover()), Report())
        routes = tables.read(open_inputs(dump), discovery, Report())
        assert routes.num_paths == 2**lmc
        yield Routed(made, simulation, discovery, routes)


def test_ibnetdiscover_reports_the_fabric_that_was_made(routed: Routed) -> None:
    """Written by us, served by ibsim, searched by ibnetdiscover, read by us: still the same fabric."""
    assert described(routed.discovery.fabric) == described(routed.made)


def switches_crossed(routes: Routes, source: int, destination: int, path: int) -> list[str]:
    """GUIDs of the switches from one adapter to another."""
    fabric = routes.fabric
    leaf = fabric.adapter_leaf[[source]]
    hops, links, _ = routes.tables.walk(leaf, np.array([destination], dtype=np.int32), path)
    between = fabric.link_target[links[0, : hops[0] - 1]]
    return [fabric.switch_ids[leaf[0]], *(fabric.vertex_id(int(vertex)) for vertex in between)]


def test_routes_are_those_that_ibtracert_follows(routed: Routed) -> None:
    """100 random ordered pairs of hosts, switch by switch, on every path (LID) of the destination."""
    fabric, lids = routed.discovery.fabric, routed.base_lids()
    generator = np.random.default_rng(7)
    for number in range(PAIRS):
        source, destination = generator.choice(fabric.num_adapters, size=2, replace=False).tolist()
        path = number % routed.routes.num_paths
        ours = switches_crossed(routed.routes, source, destination, path)
        ends = lids[fabric.adapter_ids[source]], lids[fabric.adapter_ids[destination]] + path
        assert ours == routed.simulation.trace(*ends), f"from LID {ends[0]} to LID {ends[1]}"


def test_paths_of_one_adapter_differ_where_the_lmc_allows(routed: Routed) -> None:
    """With LMC 1 OpenSM sends some pair's two paths over different switches; else there is but one path."""
    tables_of_paths = routed.routes.next_link
    assert (tables_of_paths[0] != tables_of_paths[-1]).any() == (len(tables_of_paths) > 1)


def test_dump_fts_and_ibroute_say_the_same(routed: Routed) -> None:
    """All three spellings of the tables, the last one a file a switch, are read as the same routes."""
    simulation, lids = routed.simulation, routed.base_lids()
    whole = simulation.directory / "dump_fts"
    whole.write_text(simulation.run("dump_fts"))
    single = simulation.directory / "ibroute"
    single.mkdir()
    for identity in routed.discovery.fabric.switch_ids:
        (single / f"{identity}.txt").write_text(simulation.run("ibroute", str(lids[identity])))
    for path in (whole, single):
        again = tables.read(open_inputs(path), routed.discovery, Report())
        assert (again.next_link == routed.routes.next_link).all(), path.name
