"""Modes of execution: the published tables, properties of halves, and files for launchers."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.modes.cores import MODES, NodeCores, cores_of, node_of, place
from topompi.machine.colocation.modes.files import write_places
from topompi.topology.inside.hwlocxml import read_file
from topompi.topology.inside.values import HostPart, Inside

RECORDS = Path(__file__).parents[2] / "records"


def test_table_3_1_of_the_source_is_exact():
    """16 ranks on nodes of two packages with 8 cores: nodes, cores used, idle, for another job."""
    found = {mode: place(NodeCores.of(8, 8), mode, 16) for mode in MODES}
    told = {mode: (one.nodes, len(one.cores), one.idle, one.shared) for mode, one in found.items()}
    assert told == {
        "compact": (1, 16, 0, 0), "spread": (2, 8, 8, 0), "striped": (2, 8, 0, 8), "exclusive": (2, 8, 0, 8),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("processes", "cores", "compact", "striped"),
    [(256, 20, 13, 26), (256, 48, 6, 11), (1024, 20, 52, 103), (64, 20, 4, 7)],
)
def test_whole_nodes_are_counted_as_in_the_source(processes: int, cores: int, compact: int, striped: int):
    node = NodeCores.of(cores // 2, cores // 2)
    assert [place(node, mode, processes).nodes for mode in ("compact", "striped")] == [compact, striped]


@examples(60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from(["striped", "exclusive"]))
def test_two_jobs_use_each_core_once(sizes: list[int], mode: str):
    node = NodeCores.of(*sizes)
    if (
        node.size < 2
        or (mode == "exclusive" and len(sizes) < 2)
        or (mode == "striped" and max(sizes) == 1 == len(sizes))
    ):
        return
    halves = [set()] * 2
    for second in (False, True):
        try:
            halves[second] = set(cores_of(node, mode, second))
        except ColocationError:
            halves[second] = set()
    assert halves[0] | halves[1] == set(cores_of(node, "compact"))
    assert not halves[0] & halves[1]
    if len(set(sizes)) == 1 and mode == "striped":
        assert abs(len(halves[0]) - len(halves[1])) <= 1


def test_striping_halves_each_package_and_exclusive_does_not():
    node = NodeCores.of(3, 3)
    assert [core.cpu for core in cores_of(node, "striped")] == [0, 1, 3]
    assert [core.cpu for core in cores_of(node, "striped", True)] == [2, 4, 5]
    assert [core.cpu for core in cores_of(node, "exclusive", True)] == [3, 4, 5]


def test_ranks_use_the_first_hardware_thread_of_each_core_of_an_hwloc_file(tmp_path: Path):
    """Two packages with two cores, whose CPUs alternate: package 0 has CPUs 0, 2 and their siblings 4, 6."""
    cores = "".join(
        f'<object type="Package" os_index="{p}" cpuset="{sum(1 << c for c in (p, p + 2, p + 4, p + 6)):#010x}">'
        + "".join(
            f'<object type="Core" os_index="{c}" cpuset="{1 << c | 1 << c + 4:#010x}">'
            f'<object type="PU" os_index="{c}" cpuset="{1 << c:#010x}"/>'
            f'<object type="PU" os_index="{c + 4}" cpuset="{1 << c + 4:#010x}"/></object>'
            for c in (p, p + 2)
        )
        + "</object>"
        for p in (0, 1)
    )
    (tmp_path / "n.xml").write_text(
        f'<topology version="2.0"><object type="Machine" cpuset="0x000000ff">{cores}</object></topology>'
    )
    node = node_of(read_file(tmp_path / "n.xml"))
    assert [[core.cpu for core in package] for package in node.packages] == [[0, 2], [1, 3]]
    assert [core.cpu for core in cores_of(node, "striped")] == [0, 1]
    done = command_line("colocate", "place", "striped", "-n", 4, "--inside", tmp_path / "n.xml", "--second", "--json")
    facts = json.loads(done.stdout)
    assert (facts["nodes"], facts["shared"], [one["cpu"] for one in facts["cores"]]) == (2, 2, [2, 3])


@pytest.mark.parametrize("name", ["hwloc1.xml", "hwloc2.xml"])
def test_recorded_nodes_have_all_their_cores(name: str):
    inside = read_file(RECORDS / name)
    assert node_of(inside).size == (len(inside.cores) or inside.cpus.bit_count())


def test_a_node_without_known_parts_has_a_package_of_its_cpus_and_memory_alone_is_no_package():
    bare = node_of(Inside.of("x", "n", 0b1011, []))
    assert [[core.cpu for core in package] for package in bare.packages] == [[0, 1, 3]]
    parts = [HostPart("package", 0, 0b0011), HostPart("package", 1, 0), HostPart("package", 2, 0b1100)]
    parts += [HostPart("core", cpu, 1 << cpu) for cpu in (3, 2, 1, 0)]
    node = node_of(Inside.of("x", "n", 0b1111, parts))
    assert [[(core.package, core.cpu) for core in package] for package in node.packages] == [
        [(0, 0), (0, 1)], [(1, 2), (1, 3)],
    ]  # fmt: skip
    lost = Inside.of("x", "n", 0b111, [HostPart("package", 0, 0b011), *parts[3:]])
    assert "x: expecting core 2 in a package, got it in none" in refusal(node_of, lost, error=ColocationError)


def test_of_an_odd_number_of_packages_the_first_job_has_one_more():
    node = NodeCores.of(1, 2, 3)
    assert [core.cpu for core in cores_of(node, "exclusive")] == [0, 1, 2]
    assert [core.cpu for core in cores_of(node, "exclusive", True)] == [3, 4, 5]


FILES = {
    "openmpi": """# mpirun -n 3 --host n1:2,n2:1 --map-by rankfile:file=THIS_FILE PROGRAM
rank 0=n1 slot=0:1
rank 1=n1 slot=1:1
rank 2=n2 slot=0:1
""",
    "mpich": """# mpiexec -f THIS_FILE -n 3 -bind-to user:1,3 PROGRAM
n1:2
n2:1
""",
    "slurm": "srun --nodes=2 --ntasks=3 --ntasks-per-node=2 --nodelist=n1,n2 --distribution=block "
    "--cpu-bind=map_cpu:1,3 --overlap PROGRAM\n",
}


@pytest.mark.parametrize("form", FILES)
def test_files_of_launchers_have_the_places_of_the_second_job(form: str):
    assert write_places(place(NodeCores.of(2, 2), "striped", 3, second=True), ["n1", "n2", "n3"], form) == FILES[form]


def test_steps_overlap_only_if_another_job_may_use_the_node():
    hosts, node = ["n1", "n2"], NodeCores.of(2, 2)
    overlapping = {mode: "--overlap" in write_places(place(node, mode, 4), hosts, "slurm") for mode in MODES}
    assert overlapping == {"compact": False, "spread": False, "striped": True, "exclusive": True}


def test_impossible_places_are_refused():
    assert "a positive number of ranks, got 0" in refusal(
        place, NodeCores.of(2, 2), "compact", 0, error=ColocationError
    )
    assert refusal(cores_of, NodeCores.of(1), "striped", True, error=ColocationError) == (
        "expecting a node of two cores or more for striped, got 1"
    )
    assert "two packages or more" in refusal(cores_of, NodeCores.of(4), "exclusive", error=ColocationError)
    assert "expecting a mode of compact, spread" in refusal(cores_of, NodeCores.of(4), "random", error=ColocationError)
    places = place(NodeCores.of(2, 2), "striped", 3)
    assert "expecting 2 hosts for 3 ranks on 2 cores each, got 1" in refusal(
        write_places, places, ["n1"], "slurm", error=ColocationError
    )
    assert "expecting a format of openmpi, mpich, slurm" in refusal(
        write_places, places, ["n1", "n2"], "pbs", error=ColocationError
    )
