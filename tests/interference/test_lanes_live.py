"""A live fabric: OpenSM takes our lanes, sets the tables of the simulated ports, and tells hosts their service level.

ibsim keeps the arbitration tables, the service levels' lanes and the partition keys of ports. It does not keep the
limit of high priority and the number of lanes in use, and it sends no data: no packet of a job is delayed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ibsim import Simulation, missing_tools, serve
from topompi.inputs import open_inputs
from topompi.machine.interference.lanes import Lanes
from topompi.machine.interference.lanes.files import write_files
from topompi.machine.interference.lanes.membership import Member, partitions, policy
from topompi.machine.interference.lanes.opensm import Qos
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric
from topompi.topology.sources import ibnetdiscover
from topompi.topology.synthetic import from_spec
from topompi.topology.writers.ibnetdiscover import write_ibnetdiscover

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())

SPEC = "XGFT(2; 6,2; 1,2)"
LANES = Lanes((0, 1, 2, 2), (1, 2, 8))
URGENT = Lanes((0, 1, 1, 1), (3, 1), (1,))
CAPACITY = 8  # turns in each table of ibsim's ports
COMPLAINT = re.compile(r".*\b(?:ERR|error|fail|warn|invalid|unknown|mismatch).*", re.IGNORECASE)


def hosts_of(fabric: Fabric, job: int) -> list[int]:
    """Three hosts of each of four jobs, on both leaf switches."""
    return list(range(job, fabric.num_hosts, 4))


def members(fabric: Fabric, lanes: Lanes) -> list[Member]:
    return [
        Member(f"job-{job}", lane, tuple(fabric.adapter_ids[host] for host in hosts_of(fabric, job)))
        for job, lane in enumerate(lanes.of_job)
    ]


@dataclass(frozen=True)
class Managed:
    """A fabric whose OpenSM has read our files."""

    fabric: Fabric
    simulation: Simulation
    lanes: Lanes
    qos: Qos
    log: Path
    lids: dict[str, int]

    def lid(self, host: int) -> int:
        return self.lids[self.fabric.adapter_ids[host]]

    def level(self, source: int, destination: int, *more: str) -> int:
        """The service level that OpenSM tells for a path between two hosts."""
        ends = f"{self.lid(source)}:{self.lid(destination)}"
        found = re.findall(
            r"\bsl\.+0x([0-9A-Fa-f]+)", self.simulation.run("saquery", "PR", *more, "--src-to-dst", ends)
        )
        assert len(found) == 1
        return int(found[0], 16)


def lids_of(simulation: Simulation) -> dict[str, int]:
    """LID of each host's port and of each switch, by its GUID."""
    discovery = ibnetdiscover.read(open_inputs(simulation.discover()), Report())
    return {identity: lid for lid, identity in discovery.lids.items()}


def managed(lanes: Lanes, write: Callable[[Sequence[Member]], str]) -> Iterator[Managed]:
    fabric, qos = from_spec(SPEC), Qos.of(lanes)
    with serve(write_ibnetdiscover(fabric)) as simulation:
        membership = simulation.directory / "jobs.conf"
        option = {policy: "qos_policy_file", partitions: "partition_config_file"}[write]
        membership.write_text(write(members(fabric, lanes)))
        options = simulation.directory / "options.conf"
        options.write_text(f"{qos.lines()}{option} {membership}\nforce_log_flush TRUE\n")
        with simulation.managed("-F", str(options)) as log:
            yield Managed(fabric, simulation, lanes, qos, log, lids_of(simulation))


@pytest.fixture(scope="module", params=[LANES, URGENT], ids=["three lanes", "one of high priority"])
def by_policy(request: pytest.FixtureRequest) -> Iterator[Managed]:
    yield from managed(request.param, policy)


@pytest.fixture(scope="module")
def by_partitions() -> Iterator[Managed]:
    yield from managed(LANES, partitions)


def test_opensm_takes_every_line_without_complaint(by_policy: Managed) -> None:
    output = (by_policy.simulation.directory / "sm.out").read_text()
    for line in by_policy.qos.lines().splitlines():
        name, value = line.split(" ", 1)
        assert f"Loading Cached Option:{name} = {value}" in output
    assert COMPLAINT.findall(by_policy.log.read_text()) == []
    assert "Loading QoS policy file" in by_policy.log.read_text()


def turns(text: str, table: str) -> tuple[tuple[int, int], ...]:
    """Lane and weight of each turn that smpquery prints for a table; turns of weight 0 are left out."""
    rows = text.partition(f"# {table} priority VL Arbitration Table:")[2].splitlines()[1:3]
    lanes, weights = ([int(cell, 16) for cell in row.split("|")[1:] if cell.strip()] for row in rows)
    assert len(lanes) == CAPACITY
    return tuple((lane, weight) for lane, weight in zip(lanes, weights, strict=True) if weight)


def ports(one: Managed) -> list[tuple[int, int]]:
    """LID and port of all hosts and of two ports of each switch."""
    hosts = [(one.lid(host), 1) for host in range(one.fabric.num_hosts)]
    return hosts + [(one.lids[switch], port) for switch in one.fabric.switch_ids for port in (1, 2)]


def test_the_arbitration_tables_of_hosts_and_switches_are_ours(by_policy: Managed) -> None:
    for lid, port in ports(by_policy):
        found = by_policy.simulation.run("smpquery", "vlarb", str(lid), str(port))
        assert turns(found, "Low") == by_policy.qos.low
        assert turns(found, "High") == by_policy.qos.high


def test_the_lanes_of_service_levels_are_ours_at_every_input(by_policy: Managed) -> None:
    for lid, port in ports(by_policy):
        found = by_policy.simulation.run("smpquery", "sl2vl", str(lid), str(port))
        rows = [row.partition(":")[2].partition(":")[2] for row in found.splitlines() if row.startswith("ports:")]
        assert rows
        for row in rows:
            assert tuple(int(cell) for cell in row.split("|") if cell.strip()) == by_policy.qos.lane_of_level


def test_opensm_tells_hosts_of_a_job_its_service_level_and_others_level_0(by_policy: Managed) -> None:
    fabric, lanes = by_policy.fabric, by_policy.lanes
    for job, lane in enumerate(lanes.of_job):
        first, second, third = hosts_of(fabric, job)
        assert by_policy.level(first, second) == by_policy.level(third, first) == lane
        assert by_policy.level(first, hosts_of(fabric, (job + 1) % 4)[0]) == 0


def test_partitions_give_their_members_a_key_and_its_paths_the_service_level(by_partitions: Managed) -> None:
    fabric, lanes = by_partitions.fabric, by_partitions.lanes
    assert COMPLAINT.findall(by_partitions.log.read_text()) == []
    for job, lane in enumerate(lanes.of_job):
        key, (first, second, _) = f"{0x8001 + job:#06x}", hosts_of(fabric, job)
        held = by_partitions.simulation.run("smpquery", "pkeys", str(by_partitions.lid(first)), "1")
        assert set(re.findall(r"0x[0-9a-f]{4}", held)) == {"0xffff", key, "0x0000"}
        assert by_partitions.level(first, second, "--pkey", key) == lane


def test_lanes_stay_if_their_lines_are_taken_out_and_go_with_the_file_that_undoes_them(tmp_path: Path) -> None:
    fabric, qos = from_spec(SPEC), Qos.of(LANES)
    options, _, _, undo = write_files(tmp_path / "lanes.conf", qos, members(fabric, LANES))
    with serve(write_ibnetdiscover(fabric)) as simulation:

        def tables() -> tuple[tuple[tuple[int, int], ...], ...]:
            lid = lids_of(simulation)[fabric.adapter_ids[0]]
            found = simulation.run("smpquery", "vlarb", str(lid), "1")
            return turns(found, "Low"), turns(found, "High")

        simulation.route("-F", str(options))
        assert tables() == (qos.low, ())
        simulation.route()
        assert tables() == (qos.low, ())
        simulation.route("-F", str(undo))
        assert tables() == (tuple((lane, 4) for lane in range(1, 8)), ((0, 4),))  # the first turns of OpenSM's defaults


def test_turns_for_which_ports_have_no_room_are_cut_off_without_a_word(tmp_path: Path) -> None:
    fabric, qos = from_spec(SPEC), Qos.of(Lanes((0, 1), (1, 40)))
    options = write_files(tmp_path / "lanes.conf", qos, members(fabric, Lanes((0, 1), (1, 40))))[0]
    with serve(write_ibnetdiscover(fabric)) as simulation:
        simulation.route("-F", str(options))
        lid = lids_of(simulation)[fabric.adapter_ids[0]]
        found = turns(simulation.run("smpquery", "vlarb", str(lid), "1"), "Low")
        assert len(qos.low) > CAPACITY
        assert found == qos.low[:CAPACITY]
        assert not COMPLAINT.findall((simulation.directory / "sm.log").read_text())
