"""The bridge's loop, and its rules for jobs that do not start, are left to Slurm, or would starve."""

import logging
import threading
import time
from dataclasses import replace

import pytest

from tests.bridge.fake import FakeSlurm
from topompi.errors import SettingError, SourceError
from topompi.machine.jobs import AllocationError, Cluster
from topompi.machine.slurm.bridge import BridgeRules, Planner
from topompi.machine.slurm.live import Renewal
from topompi.machine.slurm.loop import Bridge, Pace
from topompi.machine.slurm.mark import Mark
from topompi.machine.slurm.snapshot import SlurmJob

CLUSTER = Cluster.regular(16, 4, 2)
HOSTS = [f"n{node}" for node in range(16)]


@pytest.fixture
def slurm():
    return FakeSlurm(HOSTS)


def bridge_of(slurm, allocator="first", **pace):
    return Bridge(slurm, Planner(CLUSTER, BridgeRules(allocator=allocator)), Pace(seconds=0.01, **pace))


def door(number, size, **fields):
    return SlurmJob(**{**vars(SlurmJob(number, "door", "PENDING", "PartitionDown", size, limit=60)), **fields})


def test_the_loop_closes_the_door_and_opens_it_at_its_end(slurm):
    slurm.submit(door("1", 4), 60)
    bridge, stop = bridge_of(slurm), threading.Event()
    runner = threading.Thread(target=bridge.run, args=(stop,), daemon=True)
    runner.start()
    until = time.monotonic() + 10
    while not slurm.applied and time.monotonic() < until:
        time.sleep(0.01)
    assert not slurm.up["door"]
    stop.set()
    runner.join(10)
    assert slurm.up["door"]
    assert slurm.jobs["1"].partition == "door"  # it had not started: back to Slurm
    assert slurm.jobs["1"].wanted == ""
    assert slurm.jobs["1"].mark == Mark()


def test_the_door_is_closed_again_after_slurmctld_has_opened_it(slurm):
    bridge = bridge_of(slurm)
    bridge.make_pass()
    slurm.up["door"] = True
    bridge.make_pass()
    assert not slurm.up["door"]


def test_failed_passes_in_sequence_open_the_door_and_the_next_good_one_closes_it(slurm, caplog):
    bridge = bridge_of(slurm, failures=3)
    bridge.make_pass()
    for failed in range(1, 4):
        slurm.failures = 1
        bridge.make_pass()
        assert slurm.up["door"] == (failed == 3)
    assert bridge.counters.failed_passes == 3
    with pytest.raises(SourceError, match="in 3 passes"):
        bridge.health()
    bridge.make_pass()
    assert not slurm.up["door"]
    assert bridge.health() == "ok\n"


def test_an_error_in_the_bridge_itself_opens_the_door_and_ends_it(slurm):
    bridge = bridge_of(slurm)
    bridge.make_pass()
    bridge._planner.decide = lambda snapshot: 1 / 0
    with pytest.raises(ZeroDivisionError):
        bridge.run(threading.Event())
    assert slurm.up["door"]


def test_a_door_that_cannot_be_opened_is_logged(slurm, caplog):
    bridge = bridge_of(slurm)
    slurm.failures = 9
    with caplog.at_level(logging.WARNING):
        bridge.step_aside("a test")
    assert "could not step aside" in caplog.text


def test_a_dry_run_changes_nothing(slurm, caplog):
    slurm.submit(door("1", 4), 60)
    with caplog.at_level(logging.INFO):
        bridge_of(slurm, dry=True).make_pass()
    assert slurm.up["door"]
    assert not slurm.applied
    assert "placed" in caplog.text


def test_missing_partitions_are_named(slurm):
    del slurm.up["run"]
    with pytest.raises(SettingError, match="the partitions run in Slurm"):
        bridge_of(slurm).check_partitions()


@pytest.mark.parametrize("name", ["counts", "shared"])
def test_policies_that_name_no_whole_nodes_are_refused(name):
    with pytest.raises(AllocationError, match="names whole nodes"):
        Planner(CLUSTER, BridgeRules(allocator=name))


def test_routes_are_renewed_and_the_old_ones_stay_if_that_fails(slurm, caplog):
    planners = iter([None, SourceError("no such file"), Planner(CLUSTER, BridgeRules(allocator="bestfit"))])

    def renewed():
        planner = next(planners)
        if isinstance(planner, SourceError):
            raise planner
        return planner

    slurm.submit(door("1", 2), 60)
    bridge = Bridge(slurm, Planner(CLUSTER, BridgeRules(allocator="first")), renewed=renewed)
    for _ in range(3):
        bridge.make_pass()
    assert bridge.counters.renewals == 1
    assert "no such file" in str([vars(record) for record in caplog.records])


def test_counters_and_numbers_are_text_for_prometheus(slurm):
    bridge = bridge_of(slurm)
    slurm.submit(door("1", 4), 60)
    bridge.make_pass()
    lines = bridge.metrics().splitlines()
    assert "topompi_bridge_placed_total 1" in lines
    assert "topompi_bridge_waiting_jobs 1" in lines


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"wanted": "n3"}, "nodelist"),
        ({"excluded": "n3"}, "exclude"),
        ({"features": "fast"}, "features"),
        ({"resources": "gpu:1"}, "resources"),
        ({"reservation": "course"}, "reservation"),
        ({"together": True}, "together"),
        ({"nodes": 17}, "size"),
    ],
)
def test_jobs_with_wishes_of_their_own_are_left_to_slurm(slurm, fields, reason):
    slurm.submit(door("1", 2, **fields), 60)
    (move,) = Planner(CLUSTER, BridgeRules()).decide(slurm.snapshot()).moves
    assert (move.partition, move.mark.left, move.hosts) == ("all", reason, None)


def moved(now, reason="None", ago=0, **mark):
    return door("1", 2, partition="run", wanted="n[0-1]", reason=reason, mark=Mark(moved=now - ago, **mark))


@pytest.mark.parametrize(
    ("reason", "ago", "tries", "until"),
    [
        ("Resources", 10, 1, 0),
        ("BadConstraints", 3, 1, 0),
        ("ReqNodeNotAvail", 3, 1, 0),
        ("BeginTime", 3, 0, 0),  # it was requeued
        ("AssocGrpNodeLimit", 3, 0, 30),
        ("QOSMaxNodePerUserLimit", 3, 0, 30),
    ],
)
def test_jobs_that_do_not_start_on_their_nodes_are_pulled_back(slurm, reason, ago, tries, until):
    slurm.submit(moved(slurm.now, reason, ago), 60)
    (move,) = Planner(CLUSTER, BridgeRules()).decide(slurm.snapshot()).moves
    assert (move.partition, move.hosts, move.release) == ("door", "", reason == "BadConstraints")
    assert move.mark == Mark(tries=tries, until=slurm.now + until if until else 0)
    slurm.jobs["1"] = moved(slurm.now, reason, ago - 2 if ago == 3 else 9)
    assert not Planner(CLUSTER, BridgeRules()).decide(slurm.snapshot()).moves


def test_a_job_that_did_not_start_three_times_is_left_to_slurm(slurm):
    slurm.submit(moved(slurm.now, "Resources", 10, tries=2), 60)
    (move,) = Planner(CLUSTER, BridgeRules()).decide(slurm.snapshot()).moves
    assert (move.partition, move.hosts, move.mark.left) == ("all", "", "tries")


def test_a_job_that_was_given_nodes_holds_them(slurm):
    slurm.submit(moved(slurm.now), 60)
    slurm.submit(door("2", 15), 60)
    decision = Planner(CLUSTER, BridgeRules(allocator="first")).decide(slurm.snapshot())
    assert not decision.moves
    assert decision.waiting == 1


def test_a_job_that_waits_for_a_limit_is_not_tried_before_its_time(slurm):
    slurm.submit(door("1", 2, mark=Mark(until=slurm.now + 5)), 60)
    planner = Planner(CLUSTER, BridgeRules())
    assert not planner.decide(slurm.snapshot()).moves
    slurm.now += 5
    assert planner.decide(slurm.snapshot()).moves[0].partition == "run"


def test_the_throttle_of_an_array_is_kept(slurm):
    for task in range(6):
        slurm.submit(door(f"5_{task}", 1, array="5", throttle=2), 10)
    planner = Planner(CLUSTER, BridgeRules(allocator="first"))
    slurm.apply(planner.decide(slurm.snapshot()).moves)
    slurm.up["door"] = False
    slurm.schedule()
    assert sum(job.holds for job in slurm.jobs.values()) == 2
    for job in slurm.jobs.values():  # Slurm tells the throttle no longer, if only single tasks are left
        slurm.jobs[job.id] = replace(job, throttle=job.mark.throttle)
    assert not planner.decide(slurm.snapshot()).moves


def test_drained_nodes_take_no_job_and_do_not_stop_others(slurm):
    slurm.closed = {"n0", "n1"}
    slurm.submit(door("1", 16), 60)
    slurm.submit(door("2", 2), 60)
    (move,) = Planner(CLUSTER, BridgeRules(allocator="first")).decide(slurm.snapshot()).moves
    assert (move.job, move.hosts) == ("2", "n[2-3]")


def test_a_waiting_job_of_slurms_own_keeps_its_place_in_the_order(slurm):
    slurm.submit(door("1", 10, partition="run", state="RUNNING", hosts=tuple(HOSTS[:10]), start=slurm.now), 60)
    slurm.submit(door("2", 12, partition="all", reason="Resources", priority=9), 60)
    slurm.submit(door("3", 6, limit=600), 60)
    assert not Planner(CLUSTER, BridgeRules(allocator="first")).decide(slurm.snapshot()).moves  # 3 would delay 2
    slurm.jobs["3"] = replace(slurm.jobs["3"], limit=30)
    assert [move.job for move in Planner(CLUSTER, BridgeRules(allocator="first")).decide(slurm.snapshot()).moves] == [
        "3"
    ]


def test_a_job_of_slurms_own_that_needs_particular_nodes_does_not_starve(slurm):
    """Enough nodes are free for it, but it needs others: the bridge stops to start jobs until it runs."""
    slurm.submit(door("1", 2, partition="all", reason="Resources", priority=9), 60)
    slurm.submit(door("2", 2), 60)
    planner = Planner(CLUSTER, BridgeRules(allocator="first", starving=60))
    assert [move.job for move in planner.decide(slurm.snapshot()).moves] == ["2"]
    slurm.now += 61
    assert not planner.decide(slurm.snapshot()).moves


def test_jobs_of_slurms_own_that_break_the_isolation_are_reported(slurm):
    spread = {"partition": "all", "state": "RUNNING", "start": slurm.now}
    slurm.submit(door("1", 4, hosts=("n0", "n4", "n8", "n12"), **spread), 60)
    slurm.submit(door("2", 2, hosts=("n1", "n5"), **{**spread, "partition": "run"}, mark=Mark(moved=1)), 60)
    decision = Planner(CLUSTER, BridgeRules()).decide(slurm.snapshot())
    assert (decision.shared, decision.broken, decision.ours) == ((("1", "2"),), 0, 1)


def test_a_source_is_read_again_on_demand_or_when_its_service_has_another_generation(monkeypatch):
    made, again, generation = iter(range(9)), threading.Event(), [1]
    monkeypatch.setattr("topompi.machine.slurm.live.ask", lambda *_: {"generation": generation[0]})
    monkeypatch.setattr("topompi.machine.slurm.live.MINUTE", 0.0)
    renewal = Renewal("unix:/run/topology", again, lambda: next(made))
    assert renewal() is None
    again.set()
    assert (renewal(), renewal()) == (0, None)
    generation[0] = 2
    assert (renewal(), renewal()) == (1, None)
