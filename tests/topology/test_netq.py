"""NetQ's topology graph: its links, and the errors that it may contain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import read_text as read
from tests.support import refusal
from topompi.topology import TopologyInterface
from topompi.topology.discovery import Report
from topompi.topology.routecheck import with_routes
from topompi.topology.sources import load, netq


def answer(nodes: dict[str, int], links: list[str]) -> list[dict[str, Any]]:
    listed = [{"id": f"id-{name}", "name": name, "tier": tier, "state": "up"} for name, tier in nodes.items()]
    ids = ["-*-".join(f"id-{end}" for end in link.split()) for link in links]
    return [{"links": [{"id": one} for one in ids], "nodes": [{"compounded_nodes": listed}], "alerts": 0}]


TIERS = {"a": -1, "b": -1, "c": -1, "leaf1": 1, "leaf2": 1, "spine": 2}
LINKS = ["leaf1 a", "b leaf1", "leaf2 c", "leaf1 spine", "leaf2 spine", "spine leaf2"]


def test_hosts_cross_the_switches_that_links_join() -> None:
    discovery, problems = read(netq, json.dumps(answer(TIERS, LINKS)))
    fabric = discovery.fabric
    assert (fabric.hosts, fabric.switch_names, fabric.cabled) == (("a", "b", "c"), ("leaf1", "leaf2", "spine"), False)
    assert fabric.num_links == 2 * 5  # the last link is the fifth, from its other end
    routes = with_routes(discovery, Report()).routes
    view = TopologyInterface.place(fabric.hosts, routes)
    assert view.hop_matrix.tolist() == [[0, 1, 3], [1, 0, 3], [3, 3, 0]]
    assert not problems


def test_a_host_of_two_switches_has_two_adapters() -> None:
    fabric = read(netq, json.dumps(answer(TIERS, [*LINKS, "a leaf2"])))[0].fabric
    assert (fabric.num_hosts, fabric.num_adapters) == (3, 4)


BAD: dict[str, tuple[Any, str]] = {
    "twice": (answer(TIERS | {"x": 1}, LINKS) * 2, "f: expecting one graph, got 2"),
    "no nodes": ([{"links": []}], "f: field nodes: expecting a list, got none"),
    "no tier": ([{"links": [], "nodes": [{"compounded_nodes": [{"id": "a", "name": "a"}]}]}], "field tier"),
    "boolean tier": (answer({"a": True}, []), "f: field tier: expecting a whole number, got True"),
    "unknown end": (answer(TIERS, [*LINKS, "a leaf7"]), "one a switch at least, got the link id-a-*-id-leaf7"),
    "two hosts": (answer(TIERS, [*LINKS, "a b"]), "one a switch at least, got the link id-a-*-id-b"),
    "one end": (answer(TIERS, [*LINKS, "a"]), "f: field links.id: expecting NODE-*-NODE, got 'id-a'"),
    "no link": (answer(TIERS, LINKS[1:]), "f: expecting links of host a, got none"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_with_its_field(case: str) -> None:
    content, message = BAD[case]
    assert message in refusal(read, netq, json.dumps(content))


def test_partial_reading_keeps_what_is_sound() -> None:
    content = answer(TIERS, [*LINKS[1:], "a leaf7"])
    discovery, problems = read(netq, json.dumps(content), partial=True)
    assert discovery.fabric.hosts == ("b", "c")
    assert len(problems) == 2


def test_it_is_found_by_its_content(tmp_path: Any) -> None:
    path = tmp_path / "answer"
    for content in (answer(TIERS, LINKS), answer(TIERS, LINKS)[0]):
        path.write_text(json.dumps(content))
        assert load(path).fabric.hosts == ("a", "b", "c")
    assert not netq.recognise('{"lldp": [{"hostname": "leaf01", "peerHostname": "a-*-b"}]}')
