"""Hosts of InfiniBand adapters: descriptions in every usual form, cards, and names that the user gives."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import Model, default_report, read_default
from tests.support import command_line, examples, refusal, shared_data
from topompi.errors import SourceError
from topompi.topology import load
from topompi.topology.discovery import Report
from topompi.topology.hostnames import find_hosts
from topompi.topology.hostnaming import HostNaming, NamedPort, naming_of

CASES = {
    "A06-ndd-h/h.txt": {"n01": 2, "n02": 2, "n03": 2, "n04": 2},
    "A06-ndd-h/dual.txt": {"n01": 2, "n02": 2},
    "A06-ndd-h/d.txt": {
        f"0x{guid:016x}": 1
        for guid in (
            0xC000000000000001,
            0xC000000000000002,
            0xC000000000000003,
            0xC000000100000001,
            0xC000000100000002,
        )
    },
    "A07-nameless/hca.txt": {
        f"0x{guid:016x}": 1 for guid in (0xC000000000000001, 0xC000000000000002, 0xC000000000000003, 0xC000000100000001)
    },
    "A08-spaces/topo.txt": {f"Storage Node {number}": 1 for number in (1, 2, 3)} | {"n1": 1, "n2": 1},
    **{f"D04-devices/{name}.txt": {"n00": 2, "n01": 2} for name in ("smi", "plane", "hcaport", "storage")},
    "A08-spaces/quote.txt": dict.fromkeys(('rack "A" n1', "n's2", "n3[a]", "n4,x", "n5;gw:SX6036G/GW1"), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_reported_descriptions_give_the_hosts_that_they_name(name: str) -> None:
    fabric = load(shared_data(f"cases/{name}")).fabric
    assert {host: len(adapters) for host, adapters in zip(fabric.hosts, fabric.host_adapters, strict=True)} == (
        CASES[name]
    )


HOSTS = st.from_regex(r"[b-g]{2,6}[0-9]{1,3}(\.[a-z]{2,4})?|[A-Z][a-z]{3,6} Node [0-9]{1,2}", fullmatch=True)
DEVICES = st.from_regex(
    r"HCA-[1-9]|mlx[45]_[0-9]{1,2}|mlx5_bond_[0-9]|hfi1_[0-3]|qib[01]|ibp[1-9]s0f[01]", fullmatch=True
)
FORMS = (
    "{host} {device}",
    "{host}  {device}",
    "{device}@{host}",
    "{host}:{device}",
    "{host}/{device}",
    "{device} {host}",
)


@examples(100)
@given(
    hosts=st.lists(HOSTS, min_size=1, max_size=4, unique=True),
    devices=st.lists(DEVICES, min_size=1, max_size=3, unique=True),
    form=st.sampled_from(FORMS),
)
def test_any_form_of_host_and_device_gives_each_host_all_its_adapters(
    hosts: list[str], devices: list[str], form: str
) -> None:
    pairs = [(host, device) for device in devices for host in hosts]
    adapters = {
        f"0x{number:016x}": NamedPort(form.format(host=host, device=device), 1, f"card {number}", "f:1")
        for number, (host, device) in enumerate(pairs)
    }
    groups, words = HostNaming().hosts(adapters, {})
    assert {host: {one.device for one in members} for host, members in groups.items()} == {
        host: set(devices) for host in hosts
    }
    assert words == f"{len(pairs)} by the description without its device"


@given(host=HOSTS, count=st.integers(1, 4))
def test_equal_descriptions_without_a_device_are_one_host(host: str, count: int) -> None:
    adapters = {f"0x{number:016x}": NamedPort(host, 1, f"card {number}", "f:1") for number in range(count)}
    groups, _ = HostNaming().hosts(adapters, {})
    assert {name: len(members) for name, members in groups.items()} == {host: count}


@pytest.mark.parametrize(
    ("descriptions", "expected"),
    [
        (("n1 (mlx5_0)", "n1 [mlx5_1]", "mlx5_2-n1", "mlx5_3 - n1", "n1, mlx5_4", '"n1" mlx5_5'), {"n1": 6}),
        (("hca-2 of rack1-n3", "hca-1 of rack1-n3", "mlx5_0 on rack1-n4"), {"rack1-n3": 2, "rack1-n4": 1}),
        (("n1 mlx5_0/1", "n1 mlx5_0/2", "n1 mlx5_1 port 1", "n1;mlx5_3", "n1|mlx5_4", "n1=mlx5_5"), {"n1": 6}),
        (("n1_HCA-1", "n1-HCA-2", "n1 HCA #3", "n1 hca 4", "n1 IB-HCA-5"), {"n1": 5}),
        (("n1 HCA", "n1 HCA", "n2 HCA"), {"n1": 2, "n2": 1}),
        (
            ("n1 ConnectX-6 HDR", "n1 MT4123 ConnectX6   Mellanox Technologies", "n2 - Mellanox ConnectX-6 Adapter"),
            None,
        ),
        (("n1 bond0", "n1 rdma0", "n1 vf3", "n1 nic_0"), {"n1": 4}),
        (
            ("nœud1 HCA-1", "nœud2 HCA-1", "nic1", "ib1", "n3[a]"),
            {"nœud1": 1, "nœud2": 1, "nic1": 1, "ib1": 1, "n3[a]": 1},
        ),
        (("n1 mlx5_0", "m" * 300 + " mlx5_0"), {"n1": 1, "m" * 300 + " mlx5_0": 1}),
    ],
)
def test_marks_between_host_and_device_and_names_of_cards_are_no_part_of_the_host(
    descriptions: tuple[str, ...], expected: dict[str, int] | None
) -> None:
    assert hosts_of(*descriptions) == (expected or {"n1": 2, "n2": 1})


@pytest.mark.parametrize(
    ("descriptions", "expected"),
    [
        (("N1 HCA-1", "n1.example.org mlx5_0", "n1 HCA-2"), {"N1": 3}),
        (("n1.example.org mlx5_0", "n1 mlx5_1", "N1.Example.org mlx5_2"), {"n1.example.org": 3}),
        (("n1.a.org mlx5_0", "n1.b.org mlx5_0", "n1 mlx5_1"), {"n1.a.org": 1, "n1.b.org": 1, "n1": 1}),
        (("N1 HCA-1", "n1 HCA-1"), {"N1": 1, "n1": 1}),
        (("10.0.0.1 mlx5_0", "10 mlx5_1"), {"10.0.0.1": 1, "10": 1}),
        (("Storage Node 1 HCA-1", "storage node 1 HCA-2"), {"Storage Node 1": 1, "storage node 1": 1}),
    ],
)
def test_names_with_and_without_domain_and_in_another_case_are_one_host(
    descriptions: tuple[str, ...], expected: dict[str, int]
) -> None:
    assert hosts_of(*descriptions) == expected


MACHINES = [f"n{number:02d}" for number in range(6)]
# Roles, which differ in more than a number; numbers of planes, rails or machines; names as udev's rules make them.
ROLES = st.lists(st.from_regex(r"[qvxz][a-z]{3,8}", fullmatch=True), min_size=2, max_size=4, unique=True)
NUMBERED = st.builds(
    lambda stem, count: [f"{stem}{number}" for number in range(count)],
    st.from_regex(r"[qvxz][a-z]{0,6}", fullmatch=True),
    st.integers(2, 4),
)
EVEN = None  # node GUIDs without a gap between hosts


def paired(host: int, word: int) -> int:
    return host * 0x1000 + word


def adapters_of(hosts: list[str], words: list[str], node) -> dict[str, NamedPort]:
    """An adapter per host and word; ``node`` gives the node GUID by the numbers of the host and the word."""
    pairs = [(host, word) for host in range(len(hosts)) for word in range(len(words))]
    nodes = {pair: number if node is None else node(*pair) for number, pair in enumerate(pairs, 1)}
    return {
        f"0x{number:x}": NamedPort(f"{hosts[pair[0]]} {words[pair[1]]}", 1, f"0x{nodes[pair] + 1:x}", f"f:{number}")
        for number, pair in enumerate(pairs, 1)
    }


def grouped(adapters: dict[str, NamedPort], cards: dict[str, str] | None = None) -> dict[str, int]:
    return {host: len(members) for host, members in HostNaming().hosts(adapters, cards or {})[0].items()}


@examples(30)
@given(
    words=st.one_of(ROLES, NUMBERED),
    form=st.sampled_from(
        ["mlx5_0 {}", "HCA-1/{}", "mlx5_{}", "hfi1_0 ({})", "mlx4_0:{}", "ib{}", "roce{}", "HCA-1,{}"]
    ),
    count=st.integers(2, 6),
)
def test_words_behind_a_driver_or_with_its_beginning_are_adapters_of_one_host(words, form, count) -> None:
    found = adapters_of(MACHINES[:count], [form.format(word) for word in words], EVEN)
    assert grouped(found) == dict.fromkeys(MACHINES[:count], len(words))


@examples(30)
@given(words=st.one_of(ROLES, NUMBERED), count=st.integers(2, 6), data=st.data())
def test_invented_words_are_adapters_of_one_host_if_cards_guids_or_known_devices_say_it(words, count, data) -> None:
    hosts, expected = MACHINES[:count], dict.fromkeys(MACHINES[:count], len(words))
    assert grouped(adapters_of(hosts, words, paired)) == expected
    spread = adapters_of(hosts, words, EVEN)
    systems = {one.card: one.description.split()[0] for one in spread.values()}
    assert grouped(spread, systems) == expected
    known = {f"0xf{at}": NamedPort(f"{host} mlx5_0", 1, f"0xf{at}0000", "f:1") for at, host in enumerate(hosts)}
    assert grouped(known | spread) == dict.fromkeys(hosts, len(words) + 1)
    lone = {"0xeeee": NamedPort(f"n99 {data.draw(st.sampled_from(words))}", 1, "0xe0000", "f:9")}
    assert grouped(lone | adapters_of(hosts, words, paired)) == {"n99": 1} | expected


@examples(30)
@given(words=ROLES)
def test_the_same_roles_behind_many_hosts_are_adapters(words: list[str]) -> None:
    assert grouped(adapters_of(MACHINES, words, EVEN)) == dict.fromkeys(MACHINES, len(words))


@examples(30)
@given(words=NUMBERED, racks=st.integers(2, 6), shape=st.sampled_from(["r{}", "rack {}", "pod{} row"]))
def test_machines_of_racks_are_never_joined(words: list[str], racks: int, shape: str) -> None:
    names = [shape.format(rack) for rack in range(racks)]
    repeated = adapters_of(names, words, EVEN)
    with pytest.raises(SourceError, match="which may be two hosts or two adapters of one"):
        grouped(repeated)
    report = Report(partial=True)
    groups, _ = HostNaming().hosts(repeated, {}, report.problem)
    assert len(groups) == len(repeated)
    assert len(report.problems) == 1
    rule = naming_of(None, r".*")
    assert len(rule.hosts(repeated, {})[0]) == len(repeated)
    unlike = {
        key: NamedPort(f"{one.description}{number:03d}", 1, one.card, one.place)
        for number, (key, one) in enumerate(repeated.items())
    }
    assert len(grouped(unlike)) == len(unlike)


@pytest.mark.parametrize(
    "descriptions",
    [
        ("login node", "compute node", "storage node"),
        ("Storage Node 1", "Storage Node 2", "Login Node 1", "Login Node 2"),
        ("rack A n1", "rack A n2", "rack B n3", "rack B n4"),
        ("Storage Node A", "Storage Node B", "Storage Node C"),
        tuple(f"MF0;gw{switch}:SX6036G/GW{port}" for switch in (1, 2) for port in (1, 2)),
        ("r1 n0 HCA-1", "r1 n1 HCA-1", "r2 n0 HCA-1", "r2 n1 HCA-1"),
    ],
)
def test_hosts_of_several_words_stay_distinct(descriptions: tuple[str, ...]) -> None:
    names = [text.removesuffix(" HCA-1") for text in descriptions]
    assert hosts_of(*descriptions) == dict.fromkeys(names, 1)


def test_a_word_behind_a_known_host_that_no_other_host_has_is_refused() -> None:
    with pytest.raises(SourceError, match="got 'n1 spare' and 'n1', which may be two hosts"):
        hosts_of("n1 mlx5_0", "n1 spare", "n2 mlx5_0")


def hosts_of(*descriptions: str) -> dict[str, int]:
    adapters = {
        f"0x{number:016x}": NamedPort(text, 1, f"card {number}", "f:1") for number, text in enumerate(descriptions)
    }
    return {host: len(members) for host, members in HostNaming().hosts(adapters, {})[0].items()}


def test_a_job_may_spell_hosts_in_another_case() -> None:
    model = Model.on_leaves(f"{name} mlx5_0" for name in ("N1", "n2.site", "N3", "n3.b"))
    fabric = read_default(default_report(model)).fabric
    assert find_hosts(fabric, ["n1", "N2", "n3", "N4"]).tolist() == [0, 1, 3, -1]


def test_a_port_without_a_host_name_belongs_to_the_host_that_its_card_names() -> None:
    adapters = {
        "0xa1": NamedPort("mlx5_0", 1, "0xa0", "f:1"),
        "0xa2": NamedPort("n7 mlx5_1", 1, "0xb0", "f:2"),
        "0xa3": NamedPort("MT4123 ConnectX6   Mellanox Technologies", 1, "0xc0", "f:3"),
    }
    groups, words = HostNaming().hosts(adapters, {"0xa0": "0xee", "0xb0": "0xee"})
    assert {host: [one.identity for one in members] for host, members in groups.items()} == {
        "n7": ["0xa1", "0xa2"],
        "0xa3": ["0xa3"],
    }
    assert words == (
        "1 named by the card's other port, 1 by the description without its device, 1 by their cards, without a name"
    )


def test_a_card_of_two_hosts_names_neither_for_a_port_without_a_name() -> None:
    adapters = {
        f"0xa{number}": NamedPort(text, 1, "0xcc", "f:1")
        for number, text in enumerate(["n1 mlx5_0", "n2 mlx5_0", "HCA-1"])
    }
    assert set(HostNaming().hosts(adapters, {})[0]) == {"n1", "n2", "0xa2"}


def nameless_report() -> str:
    return default_report(Model.on_leaves(["HCA-1"] * 3))


def test_a_system_image_guid_of_zero_joins_no_cards() -> None:
    lines = [
        "sysimgguid=0x0" if line.startswith("sysimgguid") and "0xa" in line else line
        for line in nameless_report().splitlines()
    ]
    assert read_default("\n".join(lines)).fabric.num_hosts == 3


def test_names_by_guid_join_adapters_and_take_precedence(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text(nameless_report())
    names = tmp_path / "names"
    names.write_text('# OpenSM\'s form\n0xa001 "n1"\n0x000000000000a011 n1 # rack 3\n')
    done = command_line("topology", "show", report, "--names", names, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["hosts"], summary["adapters"]) == (2, 3)
    assert summary["naming"] == "2 by --names, 1 by their cards, without a name"


def test_a_name_rule_finds_the_host_by_its_group() -> None:
    adapters = {
        "0xa1": NamedPort("rack 3 / node12 / port A", 1, "0xa0", "f:1"),
        "0xa2": NamedPort("n1 HCA-1", 1, "0xb0", "f"),
    }
    groups, words = naming_of(None, r"/ (?P<host>\S+) /").hosts(adapters, {})
    assert list(groups) == ["node12", "n1"]
    assert words == "1 by --name-rule, 1 by the description without its device"


def test_names_take_guids_as_linux_writes_them_and_strange_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("0000:0000:0000:00a1 n1\n0000:0000:0000:00b0: n2\n00000000000000c1,n3\n")
    adapters = {"0x00000000000000a1": NamedPort("HCA-1", 1, "0x00000000000000a0", "f:1")}
    adapters["0x00000000000000b1"] = NamedPort("HCA-1", 1, "0x00000000000000b0", "f:2")
    groups, words = naming_of(str(tmp_path / "names"), None).hosts(adapters, {})
    assert list(groups) == ["n1", "n2"]
    assert words == "2 by --names; 1 of 3 GUIDs of --names are none of these"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0xa1\n", "names:1: expecting a GUID and a host name, got '0xa1'"),
        ("n1 0xa1\n", "names:1: expecting a GUID and a host name, got 'n1 0xa1'"),
        ("0xa1 n1\n0xA1 n2\n", "names:2: expecting one name of 0x00000000000000a1, got 'n1' and 'n2'"),
    ],
)
def test_a_malformed_file_of_names_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "names").write_text(text)
    assert refusal(naming_of, str(tmp_path / "names"), None, error=SourceError).endswith(message)


def test_a_malformed_name_rule_is_refused() -> None:
    with pytest.raises(SourceError, match="--name-rule: expecting a regular expression"):
        naming_of(None, "(")


def test_an_error_that_partial_passes_over_says_it(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(default_report(Model.on_leaves(["n1 HCA-1"] * 2)))
    refused = command_line("topology", "show", tmp_path / "report")
    assert refused.returncode == 1
    assert refused.stderr.endswith("; --partial reads the rest\n")
    assert command_line("topology", "show", tmp_path / "report", "--partial").returncode == 0
    assert Report().naming == HostNaming()
