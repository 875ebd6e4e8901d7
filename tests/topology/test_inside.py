"""The inside of a host from hwloc's XML, libhwloc and Linux's files, against lstopo, made machines and real dumps."""

import io
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, command_line, shared_data
from topompi.errors import FabricError
from topompi.inputs import InputFile, open_inputs
from topompi.topology import Report, load
from topompi.topology.inside import Adapter, HostPart, Inside, host_of, own_place
from topompi.topology.inside.cpus import cpu_mask, lowest, numbers_of, read_bitmap, read_cpu_list, write_cpu_list
from topompi.topology.inside.finding import find_inside, from_library, from_linux, from_lstopo, library_paths
from topompi.topology.inside.hwlocxml import MOST_DEPTH, read, read_file
from topompi.topology.inside.linux import read_system

RECORDS = ROOT / "tests" / "records"
CPU_SETS = st.sets(st.integers(0, 300))

# --- Linux's own files ---------------------------------------------------------------------------------------------

# NUMA node n has cores 2n, 2n+1 and their second threads 8+2n, 8+2n+1, and an L3; package p has NUMA nodes 2p, 2p+1.
NUMA_CPUS = [{2 * n, 2 * n + 1, 8 + 2 * n, 9 + 2 * n} for n in range(4)]


def listed(cpus: set[int]) -> str:
    return write_cpu_list(cpu_mask(cpus))


@pytest.fixture(scope="module")
def sysfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sys")

    def write(path: str, content: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content + "\n")

    write("devices/system/cpu/online", "0-15")
    write("devices/system/node/node4/cpulist", "")  # memory only
    for number, cpus in enumerate(NUMA_CPUS):
        write(f"devices/system/node/node{number}/cpulist", listed(cpus))
        for cpu in cpus:
            of_cpu, threads = f"devices/system/cpu/cpu{cpu}", listed({cpu % 8, cpu % 8 + 8})
            package = number // 2
            write(f"{of_cpu}/topology/physical_package_id", str(package))
            siblings = NUMA_CPUS[2 * package] | NUMA_CPUS[2 * package + 1]
            write(f"{of_cpu}/topology/{'core_siblings' if package else 'package_cpus'}_list", listed(siblings))
            write(f"{of_cpu}/topology/thread_siblings_list", threads)
            for index, (level, kind, sharing) in enumerate(
                ((1, "Data", threads), (1, "Instruction", listed(cpus)), (3, "Unified", listed(cpus)))
            ):
                write(f"{of_cpu}/cache/index{index}/level", str(level))
                write(f"{of_cpu}/cache/index{index}/type", kind)
                write(f"{of_cpu}/cache/index{index}/shared_cpu_list", sharing)
    write("class/infiniband/mlx5_0/node_guid", "0002:c903:0006:dbf0")
    write("class/infiniband/mlx5_0/ports/2/gids/0", "fe80:0000:0000:0000:0002:c903:0006:dbf2")
    write("class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0006:dbf1")
    write("class/infiniband/mlx5_0/device/local_cpulist", listed(NUMA_CPUS[1]))
    write("class/infiniband/rxe0/node_guid", "0000:0000:0000:0000")
    return root


@given(cpus=st.sets(st.integers(0, 15), min_size=1))
def test_domains_are_those_that_hold_all_cpus(sysfs: Path, cpus: set[int]) -> None:
    numa = [number for number, members in enumerate(NUMA_CPUS) if cpus <= members]
    packages = [p for p in (0, 1) if cpus <= NUMA_CPUS[2 * p] | NUMA_CPUS[2 * p + 1]]
    caches = [min(members) for members in NUMA_CPUS if cpus <= members]
    wanted = {"package": (packages or [-1])[0], "NUMA node": (numa or [-1])[0], "L3": (caches or [-1])[0]}
    assert own_place(sysfs, cpus, {}).domains == wanted
    assert read_system(sysfs).domains(cpu_mask(cpus)) == wanted  # of the whole host, as of the part around a CPU


def test_the_whole_system_is_read(sysfs: Path) -> None:
    found = read_system(sysfs)
    assert numbers_of(found.cpus) == list(range(16))
    assert [one.number for one in found.packages] == [0, 1]
    assert sorted((one.number, frozenset(numbers_of(one.cpus))) for one in found.numa_nodes) == [
        *((number, frozenset(cpus)) for number, cpus in enumerate(NUMA_CPUS)),
        (4, frozenset()),
    ]
    assert [one.kind for one in found.caches] == [
        "L3"
    ] * 4  # each L1 is one core's, caches of instructions do not count
    assert len(found.cores) == 8
    ports = ("0x0002c9030006dbf1", "0x0002c9030006dbf2")
    assert found.adapters == (Adapter("mlx5_0", "0x0002c9030006dbf0", ports, cpu_mask(NUMA_CPUS[1])),)


def test_no_cpus_or_unknown_cpus_have_no_domain(sysfs: Path, tmp_path: Path) -> None:
    for root, cpus in ((sysfs, []), (sysfs, [0, 99]), (tmp_path, [0])):
        assert set(own_place(root, cpus, {}).domains.values()) == {-1}


def test_unreadable_files_count_as_silence(tmp_path: Path) -> None:
    for path, content in (
        ("node/node0/cpulist", b"zero\n"),
        ("cpu/cpu0/topology/physical_package_id", b"\n"),
        ("cpu/cpu0/topology/core_siblings_list", b"0-99999999999\n"),
        ("cpu/cpu0/cache/index0/shared_cpu_list", b"\xff\xfe"),
    ):
        (tmp_path / "devices/system" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "devices/system" / path).write_bytes(content)
    assert own_place(tmp_path, [0], {}).domains == {"package": -1, "NUMA node": -1}


def test_the_affinity_mask_is_the_default(sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {6, 15}, raising=False)
    assert own_place(sysfs, environment={}).domains == {"package": 1, "NUMA node": 3, "L3": 6}


# --- sets of CPUs --------------------------------------------------------------------------------------------------


@given(cpus=CPU_SETS)
def test_cpu_lists_are_read_as_the_kernel_writes_them(cpus: set[int]) -> None:
    entries: list[list[int]] = []
    for cpu in sorted(cpus):
        if entries and entries[-1][1] == cpu - 1:
            entries[-1][1] = cpu
        else:
            entries.append([cpu, cpu])
    text = ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in entries)
    assert numbers_of(read_cpu_list(text + "\n")) == sorted(cpus)
    assert write_cpu_list(cpu_mask(cpus)) == text
    assert lowest(cpu_mask(cpus)) == min(cpus, default=-1)


@given(cpus=CPU_SETS, empty=st.booleans())
def test_bitmaps_are_read_as_hwloc_writes_them(cpus: set[int], empty: bool) -> None:
    words = [sum(1 << cpu % 32 for cpu in cpus if cpu // 32 == word) for word in reversed(range(10))]
    text = ",".join("" if empty and not word else f"0x{word:08x}" for word in words)
    assert numbers_of(read_bitmap(text)) == sorted(cpus)


# --- XML of hwloc --------------------------------------------------------------------------------------------------

VERSION_1 = (RECORDS / "hwloc1.xml").read_text()
# Two packages of one CPU each, fit for this machine too, where two CPUs are; the second has memory of two kinds.
VERSION_2 = (RECORDS / "hwloc2.xml").read_text()


def xml(content: str | bytes) -> InputFile:
    data = content.encode() if isinstance(content, str) else content
    return InputFile("f", lambda: io.BytesIO(data), FabricError, "hwloc XML")


def test_version_1_is_read() -> None:
    found = read(xml(VERSION_1))
    assert (found.host, numbers_of(found.cpus)) == ("old01", [0, 1, 2, 3])
    assert found.packages == (HostPart("package", 1, 0b0101), HostPart("package", 0, 0b1010))
    assert found.numa_nodes == (HostPart("NUMA node", 0, 0b1111),)  # version 1 names none where there is one
    assert found.caches == (HostPart("L3", 0, 0b0101),)
    assert len(found.cores) == 4
    ports = ("0x0002c9030006dbf1", "0x0002c9030006dbf2")
    assert found.adapters == (Adapter("mlx4_0", "0x0002c9030006dbf0", ports, 0b0101),)
    assert found.domains(0b0100) == {"package": 1, "NUMA node": 0, "L3": 0}
    assert found.domains(0b0010) == {"package": 0, "NUMA node": 0, "L3": -1}


def test_version_3_names_the_host_beside_the_objects() -> None:
    named = VERSION_1.replace('<info name="HostName" value="old01"/>', "")
    assert read(xml(named)).host == ""
    beside = named.replace("</topology>", '<cpukind><info name="HostName" value="no"/></cpukind></topology>')
    assert read(xml(beside.replace("</topology>", '<info name="HostName" value="n01"/></topology>'))).host == "n01"
    assert read(xml(beside)).host == ""
    assert read_file(shared_data("cases/D09-hwloc3-host/v3.xml")).host == "n01"


def test_version_2_is_read() -> None:
    found = read(xml(VERSION_2))
    assert [(one.number, one.cpus) for one in found.packages] == [(0, 1), (1, 2)]
    assert [(one.number, one.cpus) for one in found.numa_nodes] == [(0, 1), (1, 2), (2, 2)]
    assert (found.caches, len(found.cores), found.adapters) == ((), 2, ())


def counts(found: Inside) -> Counter[str]:
    parts = [*found.packages, *found.numa_nodes, *(one for one in found.caches if one.kind == "L3"), *found.cores]
    return Counter({"PU": found.cpus.bit_count(), **Counter(one.kind for one in parts)})


def counts_of_hwloc(path: Path) -> Counter[str]:
    """What hwloc itself counts in a file, objects that a job may not use too."""
    words = ["hwloc-info", "--disallowed", "-i", str(path)]
    printed = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout
    found = {name: int(number) for number, name in re.findall(r":\s+([0-9]+) (\w+) \(type", printed)}
    names = {"Package": "package", "NUMANode": "NUMA node", "L3Cache": "L3", "Core": "core", "PU": "PU"}
    return Counter({ours: found[name] for name, ours in names.items() if name in found})


needs_hwloc = pytest.mark.skipif(
    not (shutil.which("lstopo-no-graphics") and shutil.which("hwloc-info")), reason="lstopo is not installed"
)


@needs_hwloc
@pytest.mark.parametrize(
    ("machine", "shared"),
    [
        ("pack:2 numa:2 l3:2 core:4 pu:2", 8),
        ("pack:2 l3:2 [numa] core:3 pu:1", 4),
        ("numa:3 l2:2 core:2 pu:1", 6),
        ("pack:2 l2:40 core:1 pu:2", 0),  # caches of single cores, whatever their threads
    ],
)
def test_made_machines_have_as_many_parts_as_lstopo_counts(tmp_path: Path, machine: str, shared: int) -> None:
    path = tmp_path / "made.xml"
    subprocess.run(["lstopo-no-graphics", "--input", machine, path], timeout=20, check=True)
    found = read_file(path)
    assert counts(found) == counts_of_hwloc(path)
    assert len(found.caches) == shared


@needs_hwloc
def test_this_machine_is_the_same_to_lstopo_libhwloc_and_linux(tmp_path: Path) -> None:
    subprocess.run(["lstopo-no-graphics", tmp_path / "here.xml"], timeout=20, check=True)
    from_tool = from_lstopo()
    assert counts(from_tool) == counts_of_hwloc(tmp_path / "here.xml")
    others = [from_linux()] + ([from_library()] if any(map(os.path.exists, library_paths())) else [])
    for other in others:
        for name in ("host", "cpus", "packages", "numa_nodes", "caches", "cores", "adapters"):
            assert getattr(other, name) == getattr(from_tool, name), (other.source, name)


def test_without_lstopo_and_libhwloc_linux_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topompi.topology.inside.finding.LSTOPO", ("no-such-program",))
    monkeypatch.setattr("topompi.topology.inside.finding.library_paths", lambda: ["no-such-library"])
    assert find_inside().source == "Linux's own files"
    monkeypatch.setattr("topompi.topology.inside.finding.SYSFS", Path("/nowhere"))
    with pytest.raises(
        FabricError, match=r"got nothing: lstopo: .*; libhwloc: .*no-such-library.*; Linux's own files: "
    ):
        find_inside()


# --- what is hostile -----------------------------------------------------------------------------------------------

LAUGHS = '<!DOCTYPE topology [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><topology>&b;</topology>'
FILE_ENTITY = '<!DOCTYPE topology [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>'
HOSTILE = {
    "entities": (LAUGHS, "f:1: expecting hwloc XML, which declares no entities, got 'a'"),
    "a file's entity": (FILE_ENTITY, "f:1: expecting hwloc XML, which declares no entities, got 'a'"),
    "cut": (VERSION_1[:900], "f:1[0-9]: expecting hwloc XML, got: "),
    "two roots": (VERSION_2 + "<topology/>", "f:[0-9]+: expecting hwloc XML, got: junk after document element"),
    "no CPUs": (
        '<topology><object type="Machine" cpuset="0x1"/></topology>',
        "expecting a host with CPUs .*, got none",
    ),
    "another root": ("<html></html>", "f:1: expecting hwloc XML, whose first element is <topology>, got <html>"),
    "no XML": ("hello", "f:1: expecting hwloc XML, got: "),
    "empty": ("\n", "f: expecting hwloc XML, got an empty file"),
    "binary": ("a\0", "f: expecting text, got binary data"),
    "no cpuset": ('<topology><object type="Core"/></topology>', "f:1: expecting a cpuset of each Core, got none"),
    "no end": (VERSION_1.replace("0x00000001", "0xf...f"), "f:9: cpuset of a Core: expecting a set of CPUs"),
    "huge cpuset": (
        VERSION_1.replace("0x00000001", "0x" + "f" * 20_000),
        "f:9: cpuset of a Core: expecting a set of CPUs",
    ),
    "a CPU twice": (VERSION_1.replace("0x0000000a", "0x0000000e"), "f: expecting CPU 2 in one package, got it in two"),
    "index": (
        VERSION_1.replace('os_index="1" cpuset="0x00000005"', 'os_index="1_0" cpuset="0x5"'),
        "f:6: expecting an os_",
    ),
    "GUID": (VERSION_1.replace("0002:c903:0006:dbf0", "-1"), "f:18: adapter mlx4_0: expecting a GUID, got '-1'"),
    "deep": ("<topology>" + "<a>" * MOST_DEPTH, f"f:1: expecting elements nested at most {MOST_DEPTH} deep, got more"),
    "encoding": (
        '<?xml version="1.0" encoding="klingon"?><topology/>',
        "f.*: expecting hwloc XML.*got: unknown encoding",
    ),
}


@pytest.mark.parametrize(("content", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_xml_raises_our_error_with_its_line(content: str, words: str) -> None:
    with pytest.raises(FabricError, match=words):
        read(xml(content))


@pytest.mark.parametrize(
    ("limit", "words"), [("MOST_BYTES", "at most 100 bytes"), ("MOST_OBJECTS", "at most 100 objects")]
)
def test_more_than_a_host_has_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, words: str) -> None:
    monkeypatch.setattr(f"topompi.topology.inside.hwlocxml.{limit}", 100)
    with pytest.raises(FabricError, match=f"expecting {words}, got more"):
        read(xml("<topology>" + '<object type="Misc"/>' * 101 + "</topology>"))


def test_a_folder_and_a_missing_file_are_no_host(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(VERSION_1)
    with pytest.raises(FabricError, match="expecting one file of hwloc XML, which describes one host, got 2"):
        read_file(tmp_path)
    with pytest.raises(FabricError, match="no such file"):
        read_file(tmp_path / "c")


# --- joined to a fabric --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "hosts", "joined", "same_name"), [("plafrim", 122, 119, 119), ("plafrim2", 118, 108, 95)]
)
def test_real_hosts_find_themselves_by_guid_where_descriptions_say_nothing(
    site: str, hosts: int, joined: int, same_name: int
) -> None:
    """Two sites' XML of each node beside their fabrics: where the fabric has a name it is the node's own."""
    archive = shared_data(f"fabrics/netloc-{site}.txz")
    fabric = load(archive, report=Report(partial=True)).fabric
    found = [read(text) for text in open_inputs(archive) if text.name.endswith(".xml")]
    assert len(found) == hosts
    known = [(one.host, host) for one in found if (host := host_of(fabric, one.guids())) is not None]
    assert len(known) == joined
    assert sum(name == host for name, host in known) == same_name
    nameless = [(name, host) for name, host in known if name != host]
    assert all(host.startswith("0x") and name not in fabric.host_index for name, host in nameless)


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_draws_a_host_and_finds_it_in_a_fabric(tmp_path: Path) -> None:
    (tmp_path / "old.xml").write_text(VERSION_1)
    leaf, host = '"S-000000000000000a"', '"H-0002c9030006dbf0"'
    report = f'Switch\t4 {leaf}\t# "leaf"\n[1]\t{host}[1](2c9030006dbf1)\t# "MT25408" lid 2 4xQDR\n\n'
    report += f'Ca\t2 {host}\t# "MT25408"\n[1](2c9030006dbf1)\t{leaf}[1]\t# lid 2 lmc 0 "leaf" lid 1 4xQDR\n'
    (tmp_path / "fabric").write_text(report)
    done = command_line("topology", "inside", "old.xml", "--topology", "fabric", folder=tmp_path)
    assert done.stdout.splitlines() == [
        "old01: 2 packages, 1 NUMA node, 1 shared L3, 4 cores, 4 CPUs",
        "└── NUMA node 0: 4 cores, CPUs 0-3",
        "    ├── package 1, L3: 2 cores, CPUs 0,2",
        "    │   └── adapter mlx4_0: 0x0002c9030006dbf0, ports 0x0002c9030006dbf1, 0x0002c9030006dbf2",
        "    └── package 0: 2 cores, CPUs 1,3",
        "from hwloc XML, old.xml",
        "in fabric: this is 0x0002c9030006dbf1",
        "  0x0002c9030006dbf1 at leaf",
    ]
    facts = json.loads(command_line("topology", "inside", "old.xml", "--json", folder=tmp_path).stdout)
    assert facts["packages"] == [{"kind": "package", "number": n, "cpus": cpus} for n, cpus in ((1, "0,2"), (0, "1,3"))]
    here = json.loads(command_line("topology", "inside", "--json").stdout)
    assert here["cpus"] == write_cpu_list(from_linux().cpus)
