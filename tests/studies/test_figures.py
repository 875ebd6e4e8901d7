"""The parts of the figures of ``studies``: placed jobs, compared algorithms, and written pages."""

import shutil

import numpy as np
import pytest

from osu_like_bench.simulate import Failure
from studies.simgrid import PEERS
from studies.subramoni import cli, jobs, link_sharing, models
from studies.subramoni.contest import Contest, gain, run
from studies.tablelist import tables_of
from topompi.schedules import make
from topompi.topology import TopologyInterface, load_routes


class StandIn:
    """An arena in which every time is written down beforehand."""

    def __init__(self, times, bound=1.0):
        self.times, self.least = times, bound

    def schedule(self, collective, algorithm, nbytes, root=0):
        return type("Cut", (), {"schedule": algorithm, "block_bytes": nbytes, "slices": 1})

    def time(self, schedule, block_bytes, lanes):
        return self.times[schedule]

    def peer(self, name, collective, nbytes, root=0):
        return self.times[name]

    def bound(self, collective, nbytes, root=0):
        return self.least


def row_of(times, ours=("proposed", "other")):
    return run([("x", 1.0, Contest(StandIn(times), "bcast", 8, ours, "default", peers=("one", "two")))])[0]


def test_the_best_peer_is_the_fastest_that_runs_the_default_among_them():
    times = {"default": 3.0, "proposed": 2.0, "other": 1.5, "one": 2.5, "two": Failure("crashed")}
    row = row_of(times)
    assert row.best_ours == ("other", 1.5)
    assert row.best_peer == ("one", 2.5)
    assert row_of(times | {"default": 2.0}).best_peer == ("default", 2.0)
    assert row.failures == ("x: two: crashed",)


def test_gains_are_before_over_after():
    row = row_of({"default": 3.0, "proposed": 2.0, "other": 1.5, "one": 1.2, "two": 9.0})
    assert row.cells[6:] == ("1.50x", "2.00x", "0.80x", "1.500")
    assert gain(Failure("no"), 1.0) == gain(1.0, Failure("no")) == "-"


def test_a_contest_in_which_all_of_ours_fail_still_makes_a_row():
    row = row_of({"default": 3.0, "proposed": Failure("a"), "other": Failure("b"), "one": 1.2, "two": 9.0})
    assert row.cells[2] == "proposed failed"
    assert row.cells[6] == "-"


@pytest.fixture(scope="module")
def stampede():
    return load_routes("stampede")


def test_hosts_that_shall_share_a_link_do_and_the_others_do_not(stampede):
    for count in (4, 8):
        for share in (True, False):
            hosts = link_sharing._hosts(count, share)
            assert len(set(hosts)) == count
            view = TopologyInterface.place([stampede.fabric.hosts[host] for host in hosts], stampede)
            assert view.get_num_hosts_sharing_links() == (count if share else 0)
            assert view.get_avg_hosts_per_leaf_switch() == count / 2


def test_the_three_switches_hold_296_processes_and_two_links_join_each_pair():
    network = jobs.three_switches()
    assert network.num_ranks == 296
    assert sorted(np.bincount(network.rank_host).tolist()) == [8] * 29 + [16] * 4
    assert (network.hops[:4, 4:] == 3).all()
    crossing = np.unique(network.links[:4, 4:][:, :, 1])
    assert len(crossing) == 2


def test_columns_on_the_same_hosts_take_as_long_as_one_with_all_their_bytes():
    """Which is what figure 6.8 simulates."""
    from studies.simgrid import Arena
    from topompi.schedules.alltoall.direct import alltoall_shift
    from topompi.schedules.alltoall.fft import grid_groups
    from topompi.schedules.alltoall.joint import side_by_side

    if shutil.which("smpirun") is None:
        pytest.skip("smpirun is not here (Debian: libsimgrid-dev), so nothing was replayed")
    one, all_of_them = (jobs.allocation("stampede", 8, ranks, among=40) for ranks in (1, 3))
    with Arena(one) as arena, Arena(all_of_them) as larger:
        groups = grid_groups(8, 3)[1]
        for column in (alltoall_shift(8), make("alltoall", "joint", one)):
            whole = side_by_side(groups, [column] * 3, "columns")
            assert larger.time(whole, 1 << 20) == pytest.approx(arena.time(column, 3 << 20), rel=1e-3)


class Sharing(StandIn):
    """As a network on which all that counts is how often its busiest link is used by all pairs of hosts."""

    def __init__(self, network):
        self.least = float(np.unique(network.links[network.links >= 0], return_counts=True)[1].max())
        self.times = dict.fromkeys((*link_sharing.OURS, "pairwise", *PEERS), self.least)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def test_the_command_prints_a_figure_and_writes_its_tables(stampede, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(link_sharing, "Arena", Sharing)
    monkeypatch.setattr(link_sharing, "load_routes", lambda name: {"stampede": stampede}[name])
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "results.md").write_text("")
    assert cli.main(["8.2", "-o", str(lab), "--only", "figure 6.2 a"]) == 0
    told = capsys.readouterr().out
    assert f"{link_sharing.TITLE}\nPaper: {link_sharing.PAPER}.\nHere: sharing costs our best " in told
    (table,) = tables_of(lab)
    assert table.stamp is not None
    assert (table.name, table.stamp.module) == ("figure 6.2 a", link_sharing.__name__)
    ratios = {}
    for hosts in (4, 8):
        shared, apart = (
            Sharing(jobs.job(stampede, link_sharing._hosts(hosts, share), 1)).least for share in (True, False)
        )
        ratios[hosts] = shared / apart
        row = next(line for line in table.rows if line.startswith(f"| {16 * hosts} on {hosts} "))
        assert [cell.strip() for cell in row.split("|")[3:8]] == [*[f"{shared / apart:.2f}x"] * 4, "1.00x"]
    assert f"our best {min(ratios.values()) - 1:.0%} to {max(ratios.values()) - 1:.0%}" in told


def test_a_default_and_ours_are_timed_under_flows_and_under_packets():
    routes = load_routes("XGFT(2; 2,2; 1,1)")
    case = models.Case(
        "one", jobs.view(routes, range(4), 1), models.of_schedules("bcast", 1 << 20, "binomial", "chain")
    )
    table = models.table_of_models("what", [case])
    assert len(table.columns) == len(table.rows[0]) == 7
    times = [float(cell.replace(",", "")) for cell in table.rows[0][1:] if "x" not in cell]
    assert times[2:] == pytest.approx(times[:2], rel=0.3)
    assert times[2:] != times[:2]
    assert table.rows[0][3] == f"{times[0] / times[1]:.2f}x"
