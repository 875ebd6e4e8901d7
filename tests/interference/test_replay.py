"""Jobs alone and together: closed forms of small cases, and isolation that keeps every time bit for bit."""

from dataclasses import replace as with_fields

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import examples, refusal
from topompi.machine.interference import InterferenceError
from topompi.machine.interference.network import SharedNetwork, components, shared_network
from topompi.machine.interference.pictures import check_plot
from topompi.machine.interference.pictures.fabric import busy_shares
from topompi.machine.interference.pictures.runs import draw
from topompi.machine.interference.placement import at_random, place
from topompi.machine.interference.replay import effectiveness, pairwise_delays, prefers, replay
from topompi.machine.interference.timeline import busiest_shared_link, link_rates
from topompi.machine.interference.traces import Trace
from topompi.machine.jobs import Cluster
from topompi.netsim import COMPUTE, RECEIVE, SEND, NetsimError, Program, packets
from topompi.topology import load
from topompi.views.cluster import cluster_of

RATE = 4e9  # bytes/s of the links of a synthetic fat tree
NBYTES = 4_000_000
SECONDS = NBYTES / RATE  # of a message alone


def cluster(spec):
    return cluster_of(load(spec).routes)


def network(machine, model="flow", latency=0.0, **about):
    return SharedNetwork(shared_network(machine, RATE, latency), model, **about)


def program(name, hosts, *messages, compute=()):
    """Messages (step, source, destination, bytes) and bursts (step, rank, seconds)."""
    rows = [(source, step, SEND, to, size) for step, source, to, size in messages]
    rows += [(to, step, RECEIVE, source, size) for step, source, to, size in messages]
    rows += [(rank, step, COMPUTE, 0, seconds) for step, rank, seconds in compute]
    return Program(np.asarray(hosts), *np.array(rows, dtype=float).T, name=name)


def alltoall(name, hosts, nbytes=NBYTES, compute=1e-4):
    size = len(hosts)
    messages = [(step, rank, (rank + step + 1) % size, nbytes) for step in range(size - 1) for rank in range(size)]
    return program(name, hosts, *messages, compute=[(0, rank, compute) for rank in range(size)])


# One switch below a root: leaves of two hosts with one link up, on which both jobs send.
SLIM = cluster("xgft:2,2;1,1")


def crossing(name, hosts, **about):
    """Rank 0 sends one message to rank 1 on the other leaf."""
    return program(name, hosts, (0, 0, 1, NBYTES), **about)


def test_two_jobs_on_one_link_take_twice_as_long_and_a_crossbar_half():
    found = replay(network(SLIM), [crossing("A", [0, 2]), crossing("B", [1, 3])])
    assert found.base == pytest.approx([SECONDS] * 2)
    assert found.alone == pytest.approx([SECONDS] * 2)
    assert found.sharing == pytest.approx([2 * SECONDS] * 2)
    assert found.inter == pytest.approx([SECONDS] * 2)
    assert found.wasted == pytest.approx(4 * SECONDS)  # two nodes each
    assert found.normalised == pytest.approx([2, 2])


def test_a_job_whose_own_messages_share_a_link_loses_to_itself():
    both = program("A", [0, 1, 2, 3], (0, 0, 2, NBYTES), (0, 1, 3, NBYTES))
    found = replay(network(SLIM), [both])
    assert found.intra == pytest.approx([SECONDS])
    assert found.inter.tolist() == [0.0]


def test_only_first_runs_are_timed_and_all_runs_are_recorded():
    short, long = crossing("A", [0, 2]), crossing("B", [1, 3], compute=[(0, 0, 10.5 * SECONDS)])
    found = replay(network(SLIM), [short, long])
    # While B computes, A runs ten times alone; half of its next run is beside B's message, as are the first half of
    # the run after that and B's second half.
    assert found.sharing == pytest.approx([SECONDS, 12.5 * SECONDS])
    assert found.runs[0].seconds == pytest.approx([SECONDS] * 10 + [1.5 * SECONDS])
    assert len(found.runs[1].ends) == 1


def test_each_job_runs_a_given_number_of_times():
    short, long = crossing("A", [0, 2]), crossing("B", [1, 3], compute=[(0, 0, 10 * SECONDS)])
    found = replay(network(SLIM), [short, long], repeats=3)
    assert found.runs[0].ends == pytest.approx([SECONDS, 2 * SECONDS, 3 * SECONDS])
    assert found.runs[1].seconds == pytest.approx([11 * SECONDS] * 3)


def test_jobs_in_groups_without_common_links_go_on_until_all_have_run_once():
    short, long = program("A", [0, 1], (0, 0, 1, NBYTES)), crossing("B", [2, 3], compute=[(0, 0, 10.5 * SECONDS)])
    found = replay(network(SLIM), [short, long])
    assert found.groups == ((0,), (1,))
    assert len(found.runs[0].ends) == 11


def test_delays_of_pairs_are_zero_without_a_common_link():
    jobs = [crossing("A", [0, 2]), crossing("B", [1, 3]), program("C", [4, 5], (0, 0, 1, NBYTES))]
    where = network(cluster("xgft:2,3;1,1"))
    found = replay(where, jobs)
    delays = pairwise_delays(where, jobs, found)
    assert delays == pytest.approx(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]) * SECONDS)


def test_effectiveness_is_the_ratio_of_what_jobs_waste_and_none_if_a_policy_wastes_nothing():
    where = network(SLIM)
    shared = replay(where, [crossing("A", [0, 2]), crossing("B", [1, 3])])
    apart = replay(where, [program("A", [0, 1], (0, 0, 1, NBYTES)), program("B", [2, 3], (0, 0, 1, NBYTES))])
    assert effectiveness(shared, shared) == 1
    assert effectiveness(shared, apart) is None


def test_waiting_for_better_nodes_pays_if_it_saves_more_interference_than_it_adds_to_the_job_itself():
    # A may run on nodes that share B's links, or inside one leaf with a slower inner exchange.
    where, beside = network(SLIM), crossing("B", [1, 3])
    placed = replay(where, [crossing("A", [0, 2]), beside])
    wanted = replay(where, [crossing("A", [2, 0]), beside])  # the opposite direction: no common link
    assert prefers(placed, wanted, 0)
    assert not prefers(wanted, placed, 0)
    assert not prefers(placed, placed, 0)
    moved = replay(where, [crossing("A", [2, 0]), crossing("B", [3, 1])])
    assert "expecting all other jobs on the same nodes" in refusal(prefers, placed, moved, 0)


def test_a_replay_wants_jobs_with_names_of_their_own_that_take_time():
    where = network(SLIM)
    assert "expecting jobs with different names, got A, A" in refusal(replay, where, [crossing("A", [0, 2])] * 2)
    assert "expecting at least 0 repeats, got -1" in refusal(replay, where, [crossing("A", [0, 2])], -1)
    idle = program("A", [0], compute=[(0, 0, 0.0)])
    assert "A: expecting a job that takes time, got one that takes none" in refusal(replay, where, [idle])
    assert "expecting one of flow, packet, got 'fluid'" in refusal(network, SLIM, "fluid")
    with pytest.raises(InterferenceError, match="expecting the latency of all links, got 12 unknown"):
        shared_network(SLIM, RATE)
    with pytest.raises(InterferenceError, match="expecting a topology source with routes, got leaves and pods"):
        shared_network(Cluster.parse("leaves=4x4x2"), RATE, 0.0)


@pytest.mark.parametrize("model", ["flow", "packet"])
def test_the_rate_of_each_job_on_a_link_is_known_at_every_moment(model):
    # A sends from the start, B after half a message; both then share the link until A's first message is over.
    jobs = [crossing("A", [0, 2]), crossing("B", [1, 3], compute=[(0, 0, SECONDS / 2)])]
    where = network(SLIM, model)
    link = busiest_shared_link(where, jobs)
    rates = link_rates(where, jobs, link, [0.2 * SECONDS, 0.49 * SECONDS, SECONDS])
    assert rates / RATE == pytest.approx(np.array([[1, 1, 0.5], [0, 0, 0.5]]), abs=0.05)
    assert where.link_name(link).count("L1/") == 1
    assert busiest_shared_link(where, [crossing("A", [0, 2]), crossing("B", [3, 1])]) is None


def test_a_picture_has_the_jobs_times_and_the_shared_link(tmp_path):
    pytest.importorskip("matplotlib")
    where, jobs = network(SLIM), [crossing("A", [0, 2]), crossing("B$_1$", [1, 3])]
    draw(where, jobs, replay(where, jobs), tmp_path / "p.svg", "two jobs")
    text = (tmp_path / "p.svg").read_text()
    for words in (
        "A: 1 ms alone, 2 ms",
        "B$_1$: 1 ms alone, 2 ms",
        f"the busiest shared link, {where.link_name(busiest_shared_link(where, jobs))}",
        "two jobs",
    ):
        assert words in text
    apart = [program("A", [0, 1], (0, 0, 1, NBYTES))]
    draw(where, apart, replay(where, apart), tmp_path / "p.png", "one job")
    assert (tmp_path / "p.png").stat().st_size
    assert "--draw: expecting a file name in .svg or .png" in refusal(check_plot, tmp_path / "p.pdf")


def test_four_jobs_with_equal_mapping_vectors_have_a_task_of_each_on_every_node():
    # Jokanovic 2014, section 2.2.3: {0,1,2,3} for each of four applications, or {i,i,i,i} for application i.
    trace = Trace(alltoall("job", range(4)))
    spread = [trace.on([0, 1, 2, 3], name=f"job {job}").hosts for job in range(4)]
    assert np.bincount(np.concatenate(spread)).tolist() == [4, 4, 4, 4]
    apart = [trace.on([job] * 4, name=f"job {job}") for job in range(4)]
    where = network(SLIM)
    assert components(where, apart) == [[0], [1], [2], [3]]
    assert components(where, [trace.on([0, 1, 2, 3], name=f"job {job}") for job in range(4)]) == [[0, 1, 2, 3]]
    assert "expecting a host of each of 4 ranks, got 3" in refusal(trace.on, [0, 1, 2])
    assert "expecting a speed above 0, got 0" in refusal(lambda: trace.on(range(4), 0.0))


# ---- isolation ----

FABRICS = ["xgft:3,4;1,2", "xgft:4,3,2;1,2,2", "kary:2,3", "xgft:2,3,2;1,1,1", "xgft:4,4;1,3"]
MACHINES = {spec: cluster(spec) for spec in FABRICS}


def random_job(draw, name, nodes):
    size, rows, computes = len(nodes), [], []
    for step in range(int(draw.integers(1, 4))):
        computes += [(step, int(rank), float(draw.choice([0.0, 1e-5, 3.3e-5]))) for rank in range(size)]
        for _ in range(int(draw.integers(1, 2 * size))):
            source, to = draw.choice(size, 2, replace=False)
            rows.append((step, int(source), int(to), float(draw.choice([100, 4096, 33_333, 250_000]))))
    return program(name, nodes, *rows, compute=[*computes, (0, 0, 1e-6)])


def random_tree(draw):
    """An XGFT of two or three levels, of any number of children and parents, also slimmed and with parallel ways."""
    height = int(draw.integers(2, 4))
    children = draw.integers(2, 6 if height == 2 else 4, height)
    parents = [1, *draw.integers(1, 4, height - 1)]
    return cluster(f"xgft:{','.join(map(str, children))};{','.join(map(str, parents))}")


def as_many_as_fit(machine, sizes, policy):
    """The nodes of the jobs that the policy can place one after the other; those that would wait are left out."""
    kept = {}
    for number, size in enumerate(sizes):
        try:
            place(machine, {**kept, str(number): size}, policy)
        except InterferenceError:
            continue
        kept[str(number)] = size
    return place(machine, kept, policy)


@pytest.mark.parametrize("model", ["flow", "packet"])
@pytest.mark.parametrize("policy", ["isolated", "disjoint"])
@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_isolated_jobs_take_the_same_time_together_as_alone_bit_for_bit(model, policy, seed):
    draw = np.random.default_rng(seed)
    machine = random_tree(draw)
    most = max(3, machine.num_nodes // 2)
    nodes = as_many_as_fit(machine, draw.integers(2, most, int(draw.integers(2, 7))).tolist(), policy)
    assume(len(nodes) > 1)
    jobs = [random_job(draw, name, of_job) for name, of_job in nodes.items()]
    where = network(machine, model, latency=float(draw.choice([0.0, 1e-7])))
    found = replay(where, jobs)
    assert (found.sharing == found.alone).all()
    assert found.wasted == 0
    assert found.groups == tuple((job,) for job in range(len(jobs)))
    assert not pairwise_delays(where, jobs, found).any()


@pytest.mark.parametrize("model", ["flow", "packet"])
@examples(15)
@given(st.integers(0, 2**32 - 1))
def test_groups_by_themselves_take_the_time_of_all_jobs_in_one_simulation(model, seed):
    draw = np.random.default_rng(seed)
    machine = MACHINES[str(draw.choice(FABRICS))]
    nodes = at_random(machine, {"A": 3, "B": 3, "C": 2}, seed)
    jobs = [random_job(draw, name, of_job) for name, of_job in nodes.items()]
    where = network(machine, model, latency=1e-7)
    found, session = replay(where, jobs), where.session()
    handles = [session.add(with_fields(one, repeat="background")) for one in jobs]
    while not all(len(session.runs(handle).ends) for handle in handles):
        session.advance()
    together = [session.runs(handle).seconds[0] for handle in handles]
    assert found.sharing == pytest.approx(together, rel=1e-9)


def test_jobs_on_one_node_share_its_links():
    jobs = [program("A", [0, 1], (0, 0, 1, NBYTES)), program("B", [0, 2], (0, 0, 1, NBYTES))]
    where = network(SLIM)
    assert components(where, jobs) == [[0, 1]]
    assert replay(where, jobs).sharing == pytest.approx([2 * SECONDS] * 2)


def test_control_packets_of_a_rendezvous_go_back_and_join_jobs_in_the_packet_model():
    jobs = [crossing("A", [0, 2]), crossing("B", [3, 1])]
    assert components(network(SLIM), jobs) == [[0], [1]]
    assert components(network(SLIM, "packet"), jobs) == [[0, 1]]


def test_processors_that_ranks_share_join_all_jobs():
    jobs = [program("A", [0, 1], (0, 0, 1, NBYTES)), program("B", [2, 3], (0, 0, 1, NBYTES))]
    about = {"settings": packets.Settings(processors=2)}
    assert components(network(SLIM, "packet", **about), jobs) == [[0, 1]]


def test_a_program_that_waits_for_ever_is_an_error_and_no_hang():
    rows = [(0, 0, RECEIVE, 1, 8.0), (0, 1, SEND, 1, 8.0), (1, 0, RECEIVE, 0, 8.0), (1, 1, SEND, 0, 8.0)]
    jobs = Program(np.array([0, 1]), *np.array(rows, dtype=float).T)
    with pytest.raises(NetsimError, match="got a step that waits for ever"):
        replay(network(SLIM), [jobs])


def test_a_shared_link_is_busy_for_the_share_of_time_that_jobs_send_on_it():
    jobs = [crossing("A", [0, 2]), crossing("B", [1, 3])]
    where = network(SLIM)
    shares = busy_shares(where, jobs, replay(where, jobs))
    link = busiest_shared_link(where, jobs)
    assert shares[:, link] == pytest.approx([0.5, 0.5])
    alone = busy_shares(where, jobs[:1], replay(where, jobs[:1]))
    assert alone[0, link] == pytest.approx(1)
