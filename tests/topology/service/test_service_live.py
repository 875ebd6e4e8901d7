"""A live service: it follows OpenSM's dumps while cables of ibsim are pulled and clients send requests."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.ibsim import Simulation, missing_tools, serve
from tests.services import raw, read, running, wait_until
from topompi.inputs import open_inputs
from topompi.machine.daemon.watch import Watch
from topompi.topology.client import Address, ask
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric
from topompi.topology.service.store import Store
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
        with running(Store(lambda: read(report, dump)), watch=Watch([report, dump])) as (service, address):
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
    assert len(seen) * len(pairs) > 1000
    assert {tuple(answers) for answers in seen} <= {tuple(before), tuple(after)}


RATE = 5_000  # queries a second
BURST = 50  # of them together, which come from one generation


class Load(threading.Thread):
    """Asks bursts of queries over a few connections at a steady rate, and judges each answer when it comes.

    :param address: of the service.
    :param answers: to each query, of each generation there may be.
    """

    def __init__(self, address: Address, answers: dict[str, tuple[str, str]]) -> None:
        super().__init__()
        self.address, self.answers, self.stop = address, answers, threading.Event()
        self.asked, self.mixed, self.wrong, self.seconds = 0, 0, [], 0.0
        self.seen: set[int] = set()

    def run(self) -> None:
        """Ask until told to stop."""
        queries = itertools.cycle(self.answers)
        clients = [self.address.connect() for _ in range(8)]
        files = [client.makefile("rb") for client in clients]
        began = time.monotonic()
        for turn, (client, file) in enumerate(itertools.cycle(zip(clients, files, strict=True))):
            if self.stop.wait(max(0.0, began + turn * BURST / RATE - time.monotonic())):
                break
            lines = [next(queries) for _ in range(BURST)]
            client.sendall("".join(f"query {line}\n" for line in lines).encode())
            self.judge(lines, [file.readline().decode().strip() for _ in lines])
        self.seconds = time.monotonic() - began
        for one in (*files, *clients):
            one.close()

    def judge(self, lines: list[str], got: list[str]) -> None:
        """Whether the answers of a burst are those of one generation."""
        self.asked += len(lines)
        self.wrong += [answer for line, answer in zip(lines, got, strict=True) if answer not in self.answers[line]]
        whole = [g for g in (0, 1) if all(a == self.answers[line][g] for line, a in zip(lines, got, strict=True))]
        self.mixed += not whole
        self.seen |= {whole[0]} if len(whole) == 1 else set()


@pytest.mark.long
def test_five_thousand_queries_a_second_go_on_while_cables_are_pulled_and_none_fails_or_mixes(tmp_path) -> None:
    """The fabric is routed twice beforehand, so that each answer can be judged when it comes."""
    made = from_spec(SPEC)
    pairs = list(itertools.permutations(made.hosts, 2))[::5]
    leaf = made.switch_ids[int(made.adapter_leaf[0])]
    cable = f"S-{leaf.removeprefix('0x')}", first_cable_up(made, leaf)
    with serve(write_ibnetdiscover(made)) as simulation:
        simulation.route()
        simulation.unlink(*cable)
        simulation.route()
        after = traced(simulation, pairs)
    with serve(write_ibnetdiscover(made)) as simulation:
        dump, report = simulation.route(), simulation.discover().rename(simulation.directory / "report")
        answers = dict(
            zip((f"{a}:{b}" for a, b in pairs), zip(traced(simulation, pairs), after, strict=True), strict=True)
        )
        words = [
            sys.executable,
            "-m",
            "topompi",
            "topology",
            "serve",
            "--topology",
            str(report),
            "--lfts",
            str(dump),
            "--watch",
        ]
        log = tmp_path / "log"
        with log.open("w") as output, subprocess.Popen([*words, "--listen", "127.0.0.1:0"], stderr=output) as process:
            try:
                address = serving(log)
                load = Load(address, answers)
                load.start()
                time.sleep(2)
                simulation.unlink(*cable)
                simulation.route()
                changed = time.monotonic()
                while ask(address, {"request": "generation"})["generation"] == 1:
                    assert time.monotonic() - changed < 20
                    time.sleep(0.02)
                took = time.monotonic() - changed
                time.sleep(2)
                load.stop.set()
                load.join(20)
                errors = ask(address, {"request": "counters"})["errors"]
            finally:
                process.kill()
        assert traced(simulation, pairs) == after
    print(f"{load.asked:,} queries in {load.seconds:.1f} s, the new generation {took:.2f} s after the dump")
    assert (load.wrong, load.mixed, errors) == ([], 0, 0)
    assert load.seen == {0, 1}
    assert load.asked > 4 * RATE / 2


def serving(log: Path) -> Address:
    """Where the service whose log this is listens, once it does."""
    wait_until(lambda: "\n" in log.read_text(), 30)
    return Address.parse(json.loads(log.read_text().splitlines()[0])["addresses"][0])


def ask_often(address: Address, lines: bytes, stop: threading.Event, seen: list[list[str]]) -> None:
    """Ask the same lines some fifty times a second, and keep the answers."""
    while not stop.wait(0.01):
        seen.append(raw(address, lines).decode().splitlines())
