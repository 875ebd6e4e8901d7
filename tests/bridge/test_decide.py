"""The decisions of the bridge: those of the simulator, at every event, also by a planner that knows nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bridge.fake import FakeSlurm
from tests.support import examples
from topompi.machine.jobs import Cluster, Workload, simulate
from topompi.machine.jobs.now import node_names
from topompi.machine.slurm.bridge import BridgeRules, Planner
from topompi.machine.slurm.snapshot import SlurmJob
from topompi.topology.sources import load_routes
from topompi.views.cluster import cluster_of

TREE = Cluster.regular(16, 4, 2)
FABRIC = cluster_of(load_routes("xgft:4,2,2;1,2,1"))
POLICIES = ["first", "bestfit", "exclusive", "leaf-exclusive", "isolated", "disjoint"]


def of_bridge(workload, cluster, policy, renew):
    """Starts and nodes of all jobs by the bridge; ``renew`` says at each pass whether the bridge has just restarted."""
    names = node_names(cluster)
    slurm = FakeSlurm(names)
    planner, begin = Planner(cluster, policy), slurm.now
    arrivals = list(range(len(workload)))
    while arrivals or slurm.jobs:
        arrival = begin + int(workload.submit[arrivals[0]]) if arrivals else 2**60
        slurm.pass_to(min(arrival, slurm.next_end()))
        while arrivals and begin + int(workload.submit[arrivals[0]]) == slurm.now:
            at = arrivals.pop(0)
            job = SlurmJob(str(at + 1), "door", "PENDING", "PartitionDown", int(workload.nodes[at]))
            slurm.submit(SlurmJob(**vars(job) | {"limit": int(workload.estimate[at])}), int(workload.duration[at]))
        if next(renew):
            planner = Planner(cluster, policy)
        decision = planner.decide(slurm.snapshot())
        assert not slurm.apply(decision.moves)
        slurm.up["door"] = False
        slurm.schedule()
        assert not [job for job in slurm.jobs.values() if job.partition == "run" and not job.hosts]
    place = {name: number for number, name in enumerate(names)}
    ended = [slurm.ended[str(at + 1)] for at in range(len(workload))]
    return [job.start - begin for job in ended], [sorted(place[host] for host in job.hosts) for job in ended]


def of_simulator(workload, cluster, policy):
    outcome = simulate(workload, cluster, policy.queue, policy.allocator)
    used = [
        np.sort(outcome.nodes[a:b][:size])
        for a, b, size in zip(outcome.offset, outcome.offset[1:], workload.nodes, strict=False)
    ]
    return outcome.start.tolist(), [nodes.tolist() for nodes in used]


@st.composite
def workloads(draw):
    count = draw(st.integers(1, 14))

    def column(least, most):
        return np.array(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))

    return Workload.of(
        "drawn",
        submit=np.sort(column(0, 40)),
        run=column(1, 30),
        request=column(1, 40),
        nodes=column(1, 16),
    )


CASES = [(name, "easy") for name in POLICIES]
CASES += [("isolated", "no-overtaking"), ("first", "conservative"), ("disjoint", "conservative")]


@pytest.mark.parametrize(("name", "queue"), CASES)
@given(workload=workloads(), seed=st.integers(0, 99), cluster=st.sampled_from([TREE, FABRIC]))
@examples(12)
def test_the_bridge_starts_the_simulators_jobs_on_its_nodes_whenever_it_is_restarted(
    name, queue, workload, seed, cluster
):
    policy, rng = BridgeRules(allocator=name, queue=queue), np.random.default_rng(seed)
    renew = iter(lambda: bool(rng.random() < 0.4), None)
    assert of_bridge(workload, cluster, policy, renew) == of_simulator(workload, cluster, policy)
