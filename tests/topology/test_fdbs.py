"""OpenSM's opensm.fdbs: routes equal to those of opensm-lfts.dump, and errors that name damage."""

import numpy as np
import pytest

from tests.support import shared_data, text_of
from topompi.errors import SourceError
from topompi.topology import FabricBuilder, load
from topompi.topology.discovery import Discovery, Report
from topompi.topology.sources import tables

DERIVED = "fabrics/derived-ibsim-opensm"
GUIDS = ("0x0000000000000001", "0x0000000000000002")


def pair() -> Discovery:
    """Two switches of one host each; LIDs 1 and 2 are the hosts, 3 and 4 the switches."""
    builder = FabricBuilder("pair")
    for number, switch in enumerate(GUIDS):
        builder.add_switch(switch)
        builder.add_adapter(f"0xa{number}", f"h{number}")
        builder.add_cable(f"0xa{number}", switch, 1, 1)
    builder.add_cable(*GUIDS, 2, 2)
    return Discovery(builder.build(), lids={1: "0xa0", 2: "0xa1", 3: GUIDS[0], 4: GUIDS[1]})


HEAD = "dump_ucast_routes: Switch {}\nLID    : Port : Hops : Optimal\n"
FIRST = HEAD.format(GUIDS[0]) + "0x0001 : 001  : 00   : yes\n0x0002 : 002  : 01   : yes\n0x0003 : 000  : 00   : yes\n"
SECOND = (
    HEAD.format(GUIDS[1]) + "0x0001 : 002  : 01   : No 0 hop path possible via port 1!\n0x0002 : 001  : 00   : yes\n"
)
WHOLE = FIRST + "0x0004 : UNREACHABLE\n\n" + SECOND + "0x0003 : UNREACHABLE\n0x0004 : 000  : 00   : yes\n"


def test_entries_are_found_by_lid_and_unreachable_ones_are_none() -> None:
    routes = tables.read([text_of(WHOLE)], pair(), Report())
    ports = np.where(routes.next_link[0] >= 0, routes.fabric.link_source_port[routes.next_link[0]], -1)
    assert ports.tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FIRST + SECOND, "f:9: the forwarding table of switch 0x0000000000000002 is truncated: expecting LIDs up to 3"),
        (
            WHOLE.replace("0x0002 : 001  : 00   : yes", "0x0002 : 0"),
            "f:11: expecting 'LID : Port : Hops : Optimal', got ",
        ),
        (WHOLE.replace(GUIDS[1], "0x0000000000000009"), "no such switch in pair"),
        (FIRST.replace("0x0002 : 002", "0x0002 : 007"), "ports without a link (port 7)"),
    ],
)
def test_damage_is_named_with_its_line(content: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        tables.read([text_of(content)], pair(), Report())
    assert message in str(caught.value)


def test_janus_has_the_routes_of_its_dump_of_tables() -> None:
    fabric = shared_data("fabrics/janus-2014.ibnetdiscover.xz")
    one, other = (
        load(fabric, shared_data(f"{DERIVED}/janus.minhop.{name}.xz")).routes
        for name in ("opensm.fdbs", "opensm-lfts.dump")
    )
    assert (one.next_link == other.next_link).all()
