"""A live service: it follows OpenSM's dumps while cables of ibsim are pulled and clients send requests."""

import itertools
import threading
import time

import pytest

from tests.ibsim import Simulation, missing_tools, serve
from tests.services import raw, read, running
from topompi.inputs import open_inputs
from topompi.machine.daemon.watch import Watch
from topompi.topology.client import Address, ask
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric
from topompi.topology.service.store import RouteStore
from topompi.topology.sources import ibnetdiscover
from topompi.topology.synthetic import from_spec
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())

SPEC = "XGFT(2; 3,4; 1,3)"


def traced(simulation: Simulation, pairs: list[tuple[str, str]]) -> list[str]:
    """The answers that ibtracert would give."""
    discovery = ibnetdiscover.read(open_inputs(simulation.discover()), Report())
    fabric = discovery.fabric
    lids: dict[str, int] = {}
    for lid, identity in sorted(discovery.lids.items()):
        lids.setdefault(identity, lid)
    lid_of = {fabric.hosts[fabric.adapter_host[a]]: lids[name] for a, name in enumerate(fabric.adapter_ids)}
    return [" ".join([a, *simulation.trace(lid_of[a], lid_of[b]), b]) for a, b in pairs]


def first_cable_up(fabric: Fabric, switch: str) -> int:
    """The port at which a leaf switch has its first cable to another switch."""
    vertex = fabric.num_adapters + fabric.switch_index[switch]
    up = [link for link in fabric.switch_links if fabric.link_source[link] == vertex]
    return int(fabric.link_source_port[up[0]])


def test_a_cable_is_pulled_and_the_answers_follow_without_one_that_fails_or_mixes() -> None:
    made = from_spec(SPEC)
    pairs = [pair for pair in itertools.permutations(made.hosts, 2) if pair[0] < pair[1]][::3]
    lines = "".join(f"query {a}:{b}\n" for a, b in pairs).encode()
    with serve(write_ibnetdiscover(made)) as simulation:
        dump, report = simulation.route(), simulation.discover().rename(simulation.directory / "report")
        before, seen = traced(simulation, pairs), []
        stop = threading.Event()
        with running(RouteStore(lambda: read(report, dump)), watch=Watch([report, dump])) as (service, address):
            load = threading.Thread(target=ask_often, args=(address, lines, stop, seen))
            load.start()
            leaf = made.switch_ids[int(made.adapter_leaf[0])]
            simulation.unlink(f"S-{leaf.removeprefix('0x')}", first_cable_up(made, leaf))
            simulation.route()
            changed = time.monotonic()
            while service.store.current.number == 1 and time.monotonic() - changed < 10:
                time.sleep(0.02)
            stop.set()
            load.join()
            after = traced(simulation, pairs)
            assert raw(address, lines).decode().splitlines() == after
            assert ask(address, {"request": "health"})["generation"] == 2
            assert service.counters.errors == 0
    assert before != after
    assert len(seen) > 5  # the more, the quicker the machine
    assert {tuple(answers) for answers in seen} <= {tuple(before), tuple(after)}


def ask_often(address: Address, lines: bytes, stop: threading.Event, seen: list[list[str]]) -> None:
    """Ask the same lines some fifty times a second, and keep the answers."""
    while not stop.wait(0.01):
        seen.append(raw(address, lines).decode().splitlines())
