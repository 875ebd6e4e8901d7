"""The command line as a user runs it, with the numbers of real fabrics from end to end."""

import json
import subprocess
import sys

import pytest

from tests.support import ROOT, command_line
from topompi.topology import load
from topompi.topology.hostroutes import HostRoutes

FAT_TREE = ROOT / "osu_like_bench" / "fabrics" / "fattree64.ibnetdiscover.xz"
TABLES = ROOT / "osu_like_bench" / "fabrics" / "fattree64.lfts.xz"


def topompi(*args):
    return command_line(*args)


def show(*args):
    done = topompi("topology", "show", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_show_counts_what_the_recorded_fabric_has():
    summary = show(FAT_TREE, "--lfts", TABLES)
    assert (summary["hosts"], summary["switches"], summary["components"]) == (64, 16 + 4 * 2 + 4, 1)
    assert summary["job"]["hops"]["count"] == {"1": 192, "3": 768, "5": 3072}
    # The links alone say 2 : 1 twice; OpenSM's minhop leaves two of the four top switches without a route.
    assert [level["switches"] for level in summary["levels"]] == [16, 8, 2]
    assert [level["oversubscription"] for level in summary["levels"]] == [2.0, 4.0, None]
    assert summary["job"]["tree"]["clusters"] == [1, 4, 16, 64]
    assert summary["routes"] == "forwarding tables of fattree64.lfts.xz"
    assert summary["problems"] == []


def test_show_takes_a_part_of_the_hosts():
    summary = show("xgft:4,4;1,2", "--hosts", "h[0000-0001,0004]")
    assert summary["job"]["hops"]["count"] == {"1": 2, "3": 4}
    assert summary["job"]["hosts_per_leaf"] == {"1": 1, "2": 1}


def test_show_draws_for_people():
    done = topompi("topology", "show", "xgft:4,4;1,2")
    assert done.returncode == 0, done.stderr
    for part in ("16 hosts", "over-subscription", "2 : 1", "within 3 hops", "h[0000-0003]", "80.0 %", "█"):
        assert part in done.stdout


def test_route_replies_with_the_switches_in_order():
    done = topompi("topology", "route", "--topology", FAT_TREE, "--lfts", TABLES, "h0000", "h0063")
    words = done.stdout.split()
    assert (words[0], words[-1], len(words)) == ("h0000", "h0063", 7)
    assert all(word.startswith("0x") for word in words[1:-1])
    assert topompi("topology", "route", "--topology", FAT_TREE, "h0000", "h0000").stdout.split() == ["h0000", "h0000"]
    reply = json.loads(
        topompi("topology", "route", "--topology", FAT_TREE, "--lfts", TABLES, "h0000", "h0063", "--json").stdout
    )
    assert reply["switches"] == words[1:-1]


def test_export_keeps_fabric_and_tables(tmp_path):
    exported = tmp_path / "fabric.json"
    done = topompi("topology", "export", FAT_TREE, "--lfts", TABLES, "-o", exported)
    assert done.returncode == 0, done.stderr
    before, after = load(FAT_TREE, TABLES), load(exported)
    assert after.fabric.hosts == before.fabric.hosts
    assert (after.routes.next_link == before.routes.next_link).all()
    report = tmp_path / "again.ibnetdiscover"
    assert topompi("topology", "export", exported, "-o", report).returncode == 0
    again = load(report, TABLES)  # the tables still fit: they go by GUID
    hosts = {name: again.fabric.host_index[name] for name in before.fabric.hosts}
    rows = list(hosts.values())
    both = [HostRoutes(routes, numbers).hops for routes, numbers in ((before.routes, range(64)), (again.routes, rows))]
    assert (both[0] == both[1]).all()
    assert json.loads(topompi("topology", "export", "xgft:2,2;1,1", "-o", "-").stdout)["version"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "/nowhere"], "/nowhere: expecting a file"),
        (["show", FAT_TREE, "--lfts", FAT_TREE], "expecting OpenSM forwarding tables"),
        (["show", TABLES], "it holds forwarding tables: give them with --lfts"),
        (["show", "torus:4x0"], "torus:4x0: expecting sizes of at least 1, got 0"),
        (["show", "xgft:2,2;1,1", "--hosts", "h[0-"], "host list 'h[0-'"),
        (["route", "--topology", "xgft:2,2;1,1", "h0000", "nobody"], "are not: nobody"),
        (["route", "--topology", "xgft:2,2;1,1", "h0000", "h0001", "--path", "1"], "expecting --path below 1"),
        (["export", "xgft:2,2;1,1", "-o", "x.png"], "x.png: expecting a name that ends with .json"),
        (["export", "xgft:2,2;1,1", "-o", "/nowhere/x.json"], "/nowhere/x.json"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(arguments, message):
    done = topompi("topology", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.startswith("topompi: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback():
    command = [sys.executable, "-m", "topompi", "--debug", "topology", "show", "/nowhere"]
    assert "Traceback" in subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT).stderr


def test_version_and_usage():
    assert topompi("--version").stdout.startswith("topompi 0.")
    assert topompi("topology", "show").returncode == 2
