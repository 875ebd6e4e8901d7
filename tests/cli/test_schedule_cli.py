"""``topompi schedule`` as a user runs it: every number of its output against another program or a count by hand."""

import json
from xml.etree import ElementTree

import pytest

from tests.support import command_line
from topompi.schedules.exports.jsonio import from_json
from topompi.schedules.registry import ALGORITHMS, make
from topompi.schedules.schedule import COLLECTIVES
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

FABRIC = "XGFT(2; 4,4; 1,2)"  # 4 leaf switches of 4 hosts, 2 switches above


def topompi(*args):
    return command_line("schedule", *args)


def summary(*args):
    done = topompi(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def network(fabric=FABRIC, ppn=2):
    routes = load(fabric).routes
    return network_of(TopologyInterface.place([host for host in routes.fabric.hosts for _ in range(ppn)], routes))


def test_the_registry_holds_every_collective_and_refuses_what_it_does_not_hold():
    assert set(ALGORITHMS) == {*COLLECTIVES, "fft"}
    with pytest.raises(ValueError, match=r"expecting a collective of bcast, .*, got 'broadcast'"):
        make("broadcast", "ring", network())
    with pytest.raises(ValueError, match=r"expecting an algorithm for allgather of ring, .*, got 'tree'"):
        make("allgather", "tree", network())
    with pytest.raises(ValueError, match=r"expecting parameters of tacs1 \(limit, counts\), got 'radix'"):
        make("alltoall", "tacs1", network(), radix=2)
    with pytest.raises(ValueError, match=r"root in range\(32\), got 32"):
        make("bcast", "binomial", network(), root=32)


def test_all_algorithms_of_a_collective_are_compared_by_cost():
    said = summary("alltoall", "--topology", FABRIC, "--ppn", 2, "--bytes", 1000, "--check")
    costs = [one["cost"] for one in said["schedules"]]
    assert {one["algorithm"] for one in said["schedules"]} == set(ALGORITHMS["alltoall"])
    assert costs == sorted(costs)
    assert min(costs) >= said["bound"]["seconds"] > 0
    assert all(one["ratio"] >= 1 for one in said["schedules"])
    assert said["proved"] == "alltoall"
    assert said["dcss"]["choice"] == "tacs1"
    assert "16 of 16 hosts share links" in said["dcss"]["reason"]


def test_the_least_time_is_printed_with_its_proof_and_drawn(tmp_path):
    """8 ranks of a leaf switch have 1,000 bytes for each of 24 others, and two links of 4 GB/s lead out of it."""
    where = ("alltoall", "-a", "even", "--topology", FABRIC, "--ppn", 2, "--bytes", 1000)
    said = summary(*where, "--draw", f"cut={tmp_path}/cut.svg")
    free, routes = said["optimum"]["free"], said["optimum"]["routes"]
    assert (free["proof"], routes["proof"]) == ("cut", "link")
    assert free["seconds"] == routes["seconds"] == free["reached"] == pytest.approx(8 * 24 * 1000 / 8e9)
    assert sorted(map(len, free["sets"])) == [4, 12]
    assert (len(free["links"]), free["bytes"], free["rate"]) == (2, 192_000, 8e9)
    assert said["schedules"][0]["over_optimum"] == pytest.approx(said["schedules"][0]["cost"] / free["seconds"])
    text = topompi(*where).stdout
    assert "without start-ups at least 24 us on these routes; even costs " in text
    assert "  cut between 4 and 12 hosts: 192 times the message must cross 2 links together of 8 GB/s" in text
    drawn = (tmp_path / "cut.svg").read_text()
    ElementTree.fromstring(drawn)
    assert "2 links between switches in the cut" in drawn


@pytest.mark.parametrize("collective", ["scan", "barrier", "fft"])
def test_collectives_without_a_least_time_have_none_and_no_cut(collective, tmp_path):
    assert "optimum" not in summary(collective, "--topology", FABRIC)
    refused = topompi(collective, "--topology", FABRIC, "--draw", f"cut={tmp_path}/cut.svg")
    assert "--draw cut: expecting a collective for long messages" in refused.stderr


def test_a_cut_needs_switches_and_a_name_in_svg():
    assert "--draw: expecting a file name in .svg" in topompi("bcast", "--topology", FABRIC, "--draw", "x.png").stderr


def test_a_measured_model_is_taken_as_it_is(tmp_path):
    measured = {"levels": {"0": {"t_s": 1e-6, "t_w": 0}, "3": {"t_s": 5e-6, "t_w": 1e-9}}}
    (tmp_path / "model.json").write_text(json.dumps(measured))
    where = ("--topology", FABRIC, "--hosts", "h[0000,0004]", "--bytes", 8000, "--model", tmp_path / "model.json")
    assert summary("bcast", "-a", "binomial", *where)["schedules"][0]["cost"] == pytest.approx(13e-6)


def test_parameters_root_and_placement_reach_the_generator(tmp_path):
    where = ("--topology", FABRIC, "--ppn", 2, "--export", "json", "-o", tmp_path / "s.json")
    assert topompi("bcast", "-a", "knomial", "--set", "radix=8", "--root", 5, *where).returncode == 0
    made = from_json((tmp_path / "s.json").read_text())
    assert (made.root, made.num_steps, made.algorithm) == (5, 2, "8-nomial")
    assert topompi("alltoall", "-a", "tacs1", "--place", "random:7", *where).returncode == 0
    moved = from_json((tmp_path / "s.json").read_text())
    assert topompi("alltoall", "-a", "tacs1", *where).returncode == 0
    assert (moved.destination != from_json((tmp_path / "s.json").read_text()).destination).any()


def test_exports_and_drawings_are_written(tmp_path):
    where = ("--topology", FABRIC, "--ppn", 2, "--bytes", 64)
    done = topompi("gather", "-a", "leaders", *where, "--export", "goal", "-o", tmp_path / "gather.goal")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gather.goal").read_text().startswith("num_ranks 32\n")
    done = topompi("alltoall", "-a", "colouring", *where, "--draw", tmp_path / "colouring.svg")
    assert done.returncode == 0, done.stderr
    assert "h0000 → L1/0.0" in "".join(ElementTree.parse(tmp_path / "colouring.svg").getroot().itertext())
    done = topompi("bcast", "-a", "binomial", *where, "--draw", tmp_path / "binomial.svg")
    assert done.returncode == 0, done.stderr
    assert f"<title>bcast binomial, 32 ranks on {FABRIC}</title>" in (tmp_path / "binomial.svg").read_text()


def test_people_get_a_table_the_bound_and_the_reason():
    done = topompi("bcast", "-a", "leaders", "--topology", FABRIC, "--ppn", 2, "--explain")
    assert done.returncode == 0, done.stderr
    for part in (
        "algorithm  steps  messages  MB in host  MB 1 hop  MB 3 hops  conflicts",
        "no schedule takes less than 16.38 us: the busiest host's bytes out",
        "leaders wins where links between clusters are scarce or shared",
        "h0000 → L1/0.0",
    ):
        assert part in done.stdout


def test_one_rank_alone_is_no_error():
    for collective in ALGORITHMS:
        assert summary(collective, "--topology", FABRIC, "--hosts", "h0000")["schedules"][0]["messages"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["broadcast"], "expecting a collective of bcast"),
        (["bcast", "-a", "ring"], "expecting an algorithm for bcast of binomial"),
        (["bcast", "--root", "16"], "expecting root in range(16), got 16"),
        (["bcast", "--hosts", "nowhere"], "nowhere"),
        (["bcast", "--place", "spread"], "expecting block, cyclic or random:SEED"),
        (["bcast", "--export", "goal"], "expecting --export and --output together"),
        (["bcast", "--export", "dot", "-o", "x"], "expecting --export goal, json, got 'dot'"),
        (["bcast", "--draw", "x.svg"], "expecting one --algorithm to draw or export, got all"),
        (["alltoall", "-a", "shift", "--draw", "x.png"], "--draw: expecting a file name in .svg, got 'x.png'"),
        (["bcast", "--bytes", "64X"], "--bytes: expecting a number of bytes such as 64, 8K or 1M, got '64X'"),
        (["bcast", "-a", "knomial", "--set", "radix"], "--set: expecting NAME=VALUE, got 'radix'"),
        (["bcast", "-a", "knomial", "--set", "radix=1"], "expecting radix of at least 2"),
        (["bcast", "-a", "knomial", "--set", "radix=many"], "bcast knomial: expecting other values for --set"),
        (["fft", "--set", "rows=5"], "expecting a grid of 16 ranks, got 5 x 3"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(arguments, message):
    done = topompi(*arguments, "--topology", FABRIC)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_name_may_say_how_long_messages_are(tmp_path):
    """Of 64 KiB, 8 blocks for a chain or 8 parts of each transfer of an alltoall, which takes as many messages."""

    def one(collective, algorithm):
        (made,) = summary(collective, "-a", algorithm, "--topology", FABRIC, "--bytes", "64K")["schedules"]
        return made

    whole, cut = one("alltoall", "shift"), one("alltoall", "shift/8K")
    assert (whole["messages"], cut["messages"], cut["algorithm"]) == (240, 8 * 240, "shift/8K")
    assert {hops: row["bytes"] for hops, row in cut["by_hops"].items()} == {"1": 48 << 16, "3": 192 << 16}
    assert one("alltoall", "shift/64K")["cost"] == whole["cost"] != cut["cost"]
    in_blocks = one("bcast", "chain/4K")
    assert (in_blocks["blocks"], in_blocks["block_bytes"], in_blocks["messages"]) == (16, 4096, 15 * 16)
    assert one("bcast", "chain/8K")["cost"] == one("bcast", "chain")["cost"] != in_blocks["cost"]
    out = ("--topology", FABRIC, "--export", "json", "-o", tmp_path / "schedule.json")
    assert topompi("bcast", "-a", "chain/4K", *out).returncode == 0
    assert from_json((tmp_path / "schedule.json").read_text()).blocks == 16
    done = topompi("alltoall", "-a", "shift/8K", *out)
    assert done.returncode == 1
    assert done.stderr.startswith("topompi: --export: expecting an algorithm whose messages are whole")
    done = topompi("bcast", "-a", "chain/4K", "--set", "blocks=3", "--topology", FABRIC)
    assert done.stderr == "topompi: expecting a number of blocks or an algorithm that is cut, got 3 and 'chain/4K'\n"
    done = topompi("bcast", "-a", "binomial/4K", "--topology", FABRIC)
    assert (
        "whose messages can be cut (chain, circulant, double_tree, packed_trees, lanes_circulant, "
        "lanes_double_tree), got 'binomial/4K'" in done.stderr
    )


def test_links_carry_what_an_algorithm_sends_however_its_messages_are_cut(tmp_path):
    """A chain divides 512 KiB into 8 blocks of 64 KiB by itself."""

    def drawn(loads, size):
        path = tmp_path / "fabric.svg"
        done = command_line("topology", "draw", FABRIC, "--hosts", "all", "--loads", loads, "--bytes", size, "-o", path)
        assert done.returncode == 0, done.stderr
        return path.read_text()

    assert drawn("bcast:chain/8K", "512K") == drawn("bcast:chain", "64K") != drawn("bcast:chain", "32K")
    assert drawn("alltoall:shift/8K", "64K") == drawn("alltoall:shift", "64K")
