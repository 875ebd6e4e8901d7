"""The source ``auto``, and Slurm's variables about the switches above a job's tasks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import read, running
from tests.support import examples
from topompi.errors import FabricError, SourceError, TopompiError
from topompi.topology import Discovery, Report, Routes, TopologyInterface, load
from topompi.topology.service.store import RouteStore
from topompi.topology.sources import automatic, slurm_addresses

THREE = "switch.switch.node"
SWITCHES = "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
SWITCHES += "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]\n"


def hops(discovery: Discovery | None, hosts: list[str]) -> list[list[int]]:
    assert discovery is not None
    assert discovery.routes is not None
    return TopologyInterface.place(hosts, discovery.routes).hop_matrix.tolist()


@given(leaves=st.lists(st.integers(0, 3), min_size=1, max_size=8), parents=st.integers(1, 3))
def test_hosts_are_as_far_apart_as_their_addresses_say(leaves: list[int], parents: int) -> None:
    top = "top0" if parents == 1 else f"top[0-{parents - 1}]"
    addresses = {f"n{i}": (f"{top}.leaf{leaf}.n{i}", THREE) for i, leaf in enumerate(leaves)}
    found = automatic.find(list(addresses), addresses, {})
    assert found.words == f"auto: {slurm_addresses.NAME}, {automatic.LACKS}"
    wanted = [[0 if i == j else 1 if a == b else 3 for j, b in enumerate(leaves)] for i, a in enumerate(leaves)]
    assert hops(found.discovery, list(addresses)) == wanted


def test_addresses_of_a_real_cluster_are_read() -> None:
    """As a job on Belenos (Meteo-France) printed it, and a neighbour's."""
    pattern = "switch.switch.switch.node"
    addresses = {
        "belenos386": ("root_switch.CELL1.iswi1r4s0c1l1.belenos386", pattern),
        "belenos387.site": ("root_switch.CELL1.iswi1r4s0c1l1.belenos387", pattern),
        "belenos500": ("root_switch.CELL2.iswi1r5s0c1l1.belenos500", pattern),
    }
    found = automatic.find(list(addresses), addresses, {})
    assert hops(found.discovery, list(addresses)) == [[0, 1, 5], [1, 0, 5], [5, 5, 0]]


@pytest.mark.parametrize(
    ("address", "pattern", "words"),
    [
        ("top.leaf.n0", "switch.node", "expecting an address as 'switch.node' says, got 'top.leaf.n0'"),
        ("top.leaf.n1", THREE, "expecting an address that ends with its name, got 'top.leaf.n1'"),
        ("n0", "node", "expecting a switch above the node, got 'n0'"),
        ("top.leaf.n0", "", "expecting an address as '' says"),
        ("a.leaf[0-1].n0", THREE, "expecting one switch above the node"),
        ("a.leaf[0-.n0", THREE, "expecting"),
    ],
)
def test_an_address_that_is_not_as_wanted_is_named_with_its_host(address: str, pattern: str, words: str) -> None:
    with pytest.raises(SourceError, match=r"(?s).*") as caught:
        slurm_addresses.read({"n0": (address, pattern)}, Report())
    assert words in str(caught.value)


parts = st.lists(st.sampled_from(["n0", "n1", "a", "b", "a[0-1]", "a[", "", ",", "n[0-99999999]"]), max_size=4).map(
    ".".join
)
patterns = st.lists(st.sampled_from(["switch", "block", "node", "", "rack"]), max_size=4).map(".".join)


@examples(200)
@given(addresses=st.dictionaries(st.sampled_from(["n0", "n1", "n1.x"]), st.tuples(parts, patterns), max_size=3))
def test_whatever_slurm_says_is_a_fabric_or_an_error_of_ours(addresses: dict[str, tuple[str, str]]) -> None:
    try:
        found = slurm_addresses.read(addresses, Report())
    except TopompiError:
        return
    assert set(found.fabric.hosts) == {host.partition(".")[0] for host in addresses}


def test_addresses_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(FabricError, match="cycle"):
        slurm_addresses.read({"n0": ("a.b.l.n0", f"switch.{THREE}"), "n1": ("b.a.m.n1", f"switch.{THREE}")}, Report())


def scontrol(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int = 0) -> None:
    """Put a command of this name first on the path."""
    script = folder / "scontrol"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\nexit {code}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_best_source_that_answers_counts_and_those_passed_over_are_named(tmp_path, monkeypatch) -> None:
    scontrol(tmp_path, monkeypatch, SWITCHES)
    made: Routes = read("xgft:2,2;1,1", None)
    hosts = list(made.fabric.hosts)
    addresses = {host: (f"a.b.{host}", THREE) for host in hosts}
    job = {"SLURM_JOB_ID": "1"}
    with running(RouteStore(lambda: made)) as (_, address):
        server = str(address)
        first = automatic.find(hosts, addresses, {**job, "TOPOMPI_SERVER": server})
        assert first.words == f"auto: {server}"
        assert hops(first.discovery, hosts) == TopologyInterface.place(hosts, made).hop_matrix.tolist()
        unknown = automatic.find(["n0", "n3"], {}, {**job, "TOPOMPI_SERVER": server})
        assert unknown.words.startswith("auto: scontrol show topology, no rates")
        assert "expecting some of its 4 hosts" in unknown.words
    second = automatic.find(hosts, addresses, {**job, "TOPOMPI_SERVER": server})
    assert second.words.startswith(f"auto: {slurm_addresses.NAME}, {automatic.LACKS} (not {server}: ")
    assert "Connection refused" in second.words
    third = automatic.find(["n0", "n1", "n2"], {"n0": ("a.b.n0", THREE)}, job)
    assert third.words == f"auto: scontrol show topology, {automatic.LACKS}"
    assert hops(third.discovery, ["n0", "n1", "n2"]) == [[0, 1, 3], [1, 0, 3], [3, 3, 0]]


@pytest.mark.parametrize(("text", "code"), [("slurm_load_topo error", 1), ("nothing of this kind", 0), ("", 0)])
def test_what_scontrol_cannot_say_is_no_source(tmp_path, monkeypatch, text: str, code: int) -> None:
    scontrol(tmp_path, monkeypatch, f"{text}\n" if text else "", code)
    found = automatic.find(["n0"], {}, {"SLURM_JOB_ID": "1"})
    assert found.discovery is None
    assert found.words.startswith("auto: scontrol show topology:")


def test_auto_without_any_source_is_an_error_of_a_command(monkeypatch) -> None:
    for name in ("SLURM_JOB_ID", "TOPOMPI_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(automatic, "SOCKET", "/no/such/socket")
    with pytest.raises(SourceError, match="expecting a topology, got none: auto: no service, and no job of Slurm"):
        load("auto")
