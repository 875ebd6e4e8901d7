"""Schedules written for simulators: equal content in each format, and the expected time in SimGrid's replay."""

import re
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from studies.simgrid.traces import write_traces
from topompi.schedules import Schedule
from topompi.schedules.exports.goal import write_goal
from topompi.schedules.rooted.broadcast import chain, knomial
from topompi.schedules.rooted.gather import gather_knomial
from topompi.topology import TopologyInterface
from topompi.views.network import network_of

BYTES = 3  # of a block


@st.composite
def any_schedules(draw):
    """Schedules of any rows, local moves among them: exports do not ask what rows are good for."""
    size = draw(st.integers(1, 6))
    rank = st.integers(0, size - 1)
    rows = draw(st.lists(st.tuples(st.integers(0, 5), rank, rank, st.integers(1, 4)), max_size=25))
    table = [(step, source, destination, 0, 0, 1, 0, count, 0) for step, source, destination, count in rows]
    independent, window = draw(st.booleans()), draw(st.integers(0, 3))
    return Schedule.from_rows("alltoall", size, "any", table, independent=independent, window=window)


def shift(size, window):
    """In step k rank r sends to rank r + k + 1; so many steps in flight."""
    step, rank = np.meshgrid(np.arange(1, size), np.arange(size), indexing="ij")
    to, zero = (rank + step) % size, 0 * step
    rows = np.stack((step - 1, rank, to, zero, to, zero + 1, rank, zero + 1, zero), axis=-1).reshape(-1, 9)
    return Schedule.from_rows("alltoall", size, "shift", rows, independent=True, window=window)


def ends_of(schedule):
    """For each rank and each of its steps, what it posts: Counter of (word, peer, step, bytes). Made row by row."""
    total = Counter()
    columns = (schedule.step, schedule.source, schedule.destination, schedule.count)
    for step, source, destination, count in np.stack(columns, axis=1).tolist():
        if source != destination:
            total[step, source, destination] += count
    ends = [defaultdict(Counter) for _ in range(schedule.size)]
    for (step, source, destination), count in total.items():
        ends[source][step]["send", destination, step, count * BYTES] += 1
        ends[destination][step]["recv", source, step, count * BYTES] += 1
    return ends


def window_of(schedule):
    """Steps that a rank may have in flight."""
    return (schedule.window or schedule.num_steps + 1) if schedule.independent else 1


@given(any_schedules())
@example(shift(7, 2))
@example(shift(7, 3))
def test_traces_post_each_message_once_in_order_with_the_window_full(tmp_path_factory, schedule):
    listing = write_traces(schedule, tmp_path_factory.mktemp("ti"), BYTES)
    for rank, (path, expected) in enumerate(zip(listing.read_text().splitlines(), ends_of(schedule), strict=True)):
        lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
        assert {line[0] for line in lines} == {str(rank)}
        assert [lines[0][1], lines[-1][1]] == ["init", "finalize"]
        posted, in_flight, started = defaultdict(Counter), Counter(), []
        for _, word, *numbers in lines[1:-1]:
            numbers = list(map(int, numbers))
            if word == "wait":
                source, destination, tag = numbers
                end = ("send", destination, tag) if source == rank else ("recv", source, tag)
                assert in_flight[end] == 1
                del in_flight[end]
                continue
            peer, tag, nbytes, kind = numbers
            assert kind == 6  # bytes
            if tag not in started:
                assert not started or tag > started[-1]
                flying = {step for _, _, step in in_flight}
                assert flying == set(started[max(len(started) - window_of(schedule) + 1, 0) :])
                started.append(tag)
            posted[tag][word.removeprefix("i"), peer, tag, nbytes] += 1
            in_flight[word.removeprefix("i"), peer, tag] += 1
        assert posted == expected
        assert not in_flight


GOAL_OPERATION = re.compile(r"(\w+): (?:calc 0|(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+))")


def read_goal(text):
    """Each rank's operations by label, and the graph of what each requires; every line must be understood."""
    lines = iter(text.splitlines())
    ranks = [None] * int(re.fullmatch(r"num_ranks (\d+)", next(lines))[1])
    for line in lines:
        if match := re.fullmatch(r"rank (\d+) \{", line):
            operations, graph = {}, networkx.DiGraph()
            ranks[int(match[1])] = operations, graph
        elif match := re.fullmatch(r"(\w+) requires (\w+)", line):
            assert {match[1], match[2]} <= operations.keys()
            graph.add_edge(match[1], match[2])
        elif match := GOAL_OPERATION.fullmatch(line):
            assert match[1] not in operations
            label, word, nbytes, peer, tag = match.groups()
            operations[label] = word and (word, int(peer), int(tag), int(nbytes))
            graph.add_node(label)
        else:
            assert line in ("", "}")
    return ranks


@given(any_schedules())
@example(shift(7, 2))
@example(shift(7, 3))
def test_goal_requires_exactly_the_steps_before_the_window(tmp_path_factory, schedule):
    path = tmp_path_factory.mktemp("goal") / "schedule.goal"
    write_goal(schedule, path, BYTES)
    ranks = read_goal(path.read_text(encoding="utf-8"))
    assert len(ranks) == schedule.size
    for (operations, graph), expected in zip(ranks, ends_of(schedule), strict=True):
        messages = {label: operation for label, operation in operations.items() if operation}
        assert Counter(messages.values()) == sum(expected.values(), Counter())
        steps = sorted(expected)
        for label, (_, _, step, _) in messages.items():
            before = steps[: max(steps.index(step) - window_of(schedule) + 1, 0)]
            required = networkx.descendants(graph, label) & messages.keys()
            assert required == {other for other, operation in messages.items() if operation[2] in before}


def test_goal_grows_with_the_messages_not_with_their_pairs(tmp_path):
    size = 64
    ranks = np.arange(size)
    all_pairs = np.array([(step, s, d, 0, d, 1, s, 1, 0) for step in (0, 1) for s in ranks for d in ranks])
    write_goal(Schedule.from_rows("alltoall", size, "twice all pairs", all_pairs), tmp_path / "a.goal")
    ends = 2 * 2 * size * (size - 1)
    assert len((tmp_path / "a.goal").read_text().splitlines()) < 4 * ends


def test_blocks_of_no_bytes_and_messages_beyond_the_replay_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one byte, got 0"):
        write_goal(knomial(2), tmp_path / "a.goal", 0)
    with pytest.raises(ValueError, match="below 2 GiB, got 2147483648 bytes in step 0"):
        write_traces(knomial(2), tmp_path, 2**31)


LATENCY, RATE = 2e-6, 1e9  # of a link
REPLAY_AS_WRITTEN = (  # no piecewise factors, no acknowledgements that share links, no sends that return at once
    "--cfg=smpi/bw-factor:0:1",
    "--cfg=smpi/lat-factor:0:1",
    "--cfg=network/crosstraffic:0",
    "--cfg=smpi/send-is-detached-thresh:0",
    "--cfg=smpi/host-speed:1Gf",
    "--log=xbt_cfg.thres:warning",
)


def star(hosts):
    """A platform of hosts on one switch, each with a link out and a link in, so two links a message."""
    names = [f"host{host}" for host in range(hosts)]
    links = "".join(
        f'<link id="{name}-{way}" bandwidth="{RATE}Bps" latency="{LATENCY}s"/>'
        for name in names
        for way in ("out", "in")
    )
    routes = "".join(
        f'<route src="{a}" dst="{b}" symmetrical="NO"><link_ctn id="{a}-out"/><link_ctn id="{b}-in"/></route>'
        for a in names
        for b in names
        if a != b
    )
    speeds = "".join(f'<host id="{name}" speed="1Gf"/>' for name in names)
    return (
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
        f'<platform version="4.1"><zone id="z" routing="Full">{speeds}{links}{routes}</zone></platform>'
    )


def replay(schedule, folder, block_bytes):
    """Simulated seconds of SimGrid's own replay on a star."""
    if shutil.which("smpirun") is None:
        pytest.skip("smpirun is not here (Debian: libsimgrid-dev); traces were only parsed, not replayed")
    listing = write_traces(schedule, folder / "traces", block_bytes)
    (folder / "platform.xml").write_text(star(schedule.size))
    (folder / "hosts").write_text("".join(f"host{host}\n" for host in range(schedule.size)))
    command = ["smpirun", "-replay", listing, "-np", str(schedule.size), "-platform", "platform.xml"]
    done = subprocess.run(
        [*command, "-hostfile", "hosts", *REPLAY_AS_WRITTEN], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return float(re.search(r"Simulation time ([\d.]+)", done.stderr + done.stdout)[1])


def message(nbytes):
    return 2 * LATENCY + nbytes / RATE


def test_replay_of_one_message_takes_latency_and_bytes_over_rate(tmp_path):
    assert replay(knomial(2), tmp_path, 10**6) == pytest.approx(message(10**6), abs=2e-6)


def test_replay_of_trees_and_chains_takes_their_steps(tmp_path):
    network = network_of(TopologyInterface.place([f"host{host}" for host in range(8)]))
    assert replay(knomial(8), tmp_path / "tree", 10**6) == pytest.approx(3 * message(10**6), abs=2e-6)
    # In a binomial gather 1, 2, and 4 blocks follow one another into the root.
    gathered = sum(message(blocks * 10**6) for blocks in (1, 2, 4))
    assert replay(gather_knomial(8), tmp_path / "gather", 10**6) == pytest.approx(gathered, abs=2e-6)
    piped = (8 - 2 + 5) * message(10**5)
    assert replay(chain(network, blocks=5), tmp_path / "chain", 10**5) == pytest.approx(piped, abs=2e-6)


@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_replay_of_a_shift_alltoall_overlaps_as_many_steps_as_the_window(tmp_path, window):
    size = 7
    rounds = 1 if window == 0 else -(-(size - 1) // window)
    expected = rounds * 2 * LATENCY + (size - 1) * 10**6 / RATE
    assert replay(shift(size, window), tmp_path, 10**6) == pytest.approx(expected, abs=3e-6)
