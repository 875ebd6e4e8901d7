"""The host's own levels: what a system with two packages of two NUMA nodes each says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.topology.localhost import host_domains, parse_cpu_list

# NUMA node n has cores 2n, 2n+1 and their second threads 8+2n, 8+2n+1; package p has NUMA nodes 2p, 2p+1.
NUMA_CPUS = [{2 * n, 2 * n + 1, 8 + 2 * n, 9 + 2 * n} for n in range(4)]


@pytest.fixture(scope="module")
def sysfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sys")
    for number, cpus in enumerate(NUMA_CPUS):
        node = root / f"devices/system/node/node{number}"
        node.mkdir(parents=True)
        low = 2 * number
        (node / "cpulist").write_text(f"{low}-{low + 1},{low + 8}-{low + 9}\n")
        for cpu in cpus:
            topology = root / f"devices/system/cpu/cpu{cpu}/topology"
            topology.mkdir(parents=True)
            (topology / "physical_package_id").write_text(f"{number // 2}\n")
    memory_only = root / "devices/system/node/node4"
    memory_only.mkdir()
    (memory_only / "cpulist").write_text("\n")
    return root


@given(cpus=st.sets(st.integers(0, 15), min_size=1))
def test_domains_are_those_that_hold_all_cpus(sysfs: Path, cpus: set[int]) -> None:
    numa = [number for number, members in enumerate(NUMA_CPUS) if cpus <= members]
    packages = [p for p in (0, 1) if cpus <= NUMA_CPUS[2 * p] | NUMA_CPUS[2 * p + 1]]
    assert host_domains(sysfs, cpus) == ((packages or [-1])[0], (numa or [-1])[0])


def test_no_cpus_or_unknown_cpus_have_no_domain(sysfs: Path) -> None:
    assert host_domains(sysfs, []) == (-1, -1)
    assert host_domains(sysfs, [0, 99]) == (-1, -1)


def test_a_system_that_says_nothing_has_no_domains(tmp_path: Path) -> None:
    assert host_domains(tmp_path, [0]) == (-1, -1)


def test_unreadable_files_count_as_silence(tmp_path: Path) -> None:
    node = tmp_path / "devices/system/node/node0"
    topology = tmp_path / "devices/system/cpu/cpu0/topology"
    node.mkdir(parents=True)
    topology.mkdir(parents=True)
    (node / "cpulist").write_text("zero\n")
    (topology / "physical_package_id").write_text("\n")
    assert host_domains(tmp_path, [0]) == (-1, -1)


def test_the_affinity_mask_is_the_default(sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {6, 15}, raising=False)
    assert host_domains(sysfs) == (1, 3)


def test_this_machine_answers() -> None:
    package, numa = host_domains()
    assert package >= -1
    assert numa >= -1


@given(cpus=st.sets(st.integers(0, 300)))
def test_cpu_lists_are_read_as_the_kernel_writes_them(cpus: set[int]) -> None:
    entries = []
    for cpu in sorted(cpus):
        if entries and entries[-1][1] == cpu - 1:
            entries[-1][1] = cpu
        else:
            entries.append([cpu, cpu])
    text = ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in entries)
    assert parse_cpu_list(text + "\n") == cpus
