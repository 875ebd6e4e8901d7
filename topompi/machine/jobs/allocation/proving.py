"""`check_allocator`: a test, in random states, of the properties that simulations and live use of allocators need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..cluster import Cluster
from ..errors import AllocationError
from ..workload import Workload
from .occupancy import Allocator, Job, Occupancy, Placement
from .registry import find_allocator
from .requests import requests_of
from .slots import SlotOccupancy

__all__ = ["check_allocator", "wrong_placement"]

JOBS_A_WALK = 25
Filled = TypeVar("Filled", bound=Occupancy)


def check_allocator(
    allocator: str | Allocator,
    *,
    states: int = 250,
    seed: int = 0,
    values: Mapping[str, Sequence[object]] | None = None,
) -> int:
    """Test an allocator in random states of small clusters, in which jobs start and end and nodes are closed.

    These properties are tested. In every state, `place` returns free slots of nodes that are not closed, each once, as
    many as the job needs, and nodes of other jobs only if all of them share nodes. Its result depends on the state
    alone, not on the order of the events that led to it. It leaves the state unchanged, and finds nodes if and only if
    `feasible` is true. If the allocator declares ``by_count`` or ``monotone``, these hold.

    :param allocator: the allocator, or its name; ``module:function`` for an allocator of a user's own.
    :param states: number of states.
    :param seed: seed of the random states.
    :param values: possible values of the further columns that the allocator heeds, by column; not needed for ``slots``
        and ``shared``.
    :returns: the number of states in which the allocator found nodes.
    :raises AllocationError: if the allocator fails in a state; the message describes the smallest state found in which
        it fails.
    """
    policy, rng, found, seen = find_allocator(allocator), np.random.default_rng(seed), 0, 0
    choices = {"slots": range(12), "shared": (False, True), **(values or {})}
    if missing := [word for word in policy.heeds if word not in choices]:
        raise AllocationError(f"{policy.name}: expecting values of the columns {', '.join(missing)}, got none")
    while seen < states:
        for case, history in _walk(policy, rng, choices):
            fault = _fault(policy, case) or _forgetful(policy, case, history)
            if fault:
                smallest = _shrink(policy, case)
                raise AllocationError(f"{policy.name}: {_fault(policy, smallest) or fault}; {smallest.told()}")
            seen, found = seen + 1, found + (policy.place(case.job, history) is not None)
            if seen == states:
                break
    return found


@dataclass(frozen=True, eq=False)
class _Case:
    """A job that asks for nodes in a state: a cluster, its closed nodes, and running jobs."""

    cluster: Cluster
    closed: tuple[int, ...]
    running: tuple[tuple[Job, Placement], ...]
    job: Job

    def state(self, policy: Allocator, *, backwards: bool = False) -> Occupancy:
        """Return the allocator's state after the running jobs have started in their order, or in reverse order."""
        return self._fill(policy.state(self.cluster), reversed(self.running) if backwards else self.running)

    def others(self) -> SlotOccupancy:
        """Return a `SlotOccupancy` with the slots that the running jobs and the closed nodes take."""
        return self._fill(SlotOccupancy(self.cluster), self.running)

    def _fill(self, state: Filled, running: Iterable[tuple[Job, Placement]]) -> Filled:
        for job, placement in running:
            state.start(job, placement)
        state.close(list(self.closed))
        return state

    def told(self) -> str:
        """Describe the case in one line."""
        cluster = self.cluster
        where = f"{cluster.num_nodes} nodes in leaves of {np.diff(cluster.leaf_start).tolist()}"
        where += f", pods of {np.diff(cluster.pod_start).tolist()} leaves"
        if cluster.node_slots is not None:
            where += f", slots {cluster.node_slots.tolist()}"
        closed = f"nodes {list(self.closed)} are closed; " if self.closed else ""
        held = ", ".join(f"{_told(job)} holds {_held(placement)}" for job, placement in self.running) or "no job runs"
        return f"{where}; {closed}{held}; {_told(self.job)} asks"


def _walk(
    policy: Allocator, rng: np.random.Generator, choices: Mapping[str, Sequence[object]]
) -> Iterator[tuple[_Case, Occupancy]]:
    """Yield cases on one cluster, each with the state that the starts and ends before it have led to."""
    cluster = _cluster(rng, "slots" in policy.heeds, policy.node_slots)
    jobs = _jobs(rng, cluster, policy, choices)
    state, running, closed = policy.state(cluster), dict[int, tuple[Job, Placement]](), set[int]()
    for job in jobs:
        if running and rng.random() < 0.4:
            ending = list(running)[rng.integers(len(running))]
            state.end(ending)
            del running[ending]
        if rng.random() < 0.15:
            node = int(rng.integers(cluster.num_nodes))
            (state.reopen if node in closed else state.close)([node])
            closed ^= {node}
        yield _Case(cluster, tuple(sorted(closed)), tuple(running.values()), job), state
        placement = policy.place(job, state)
        if placement is not None:
            state.start(job, placement)
            running[job.number] = job, placement


def _cluster(rng: np.random.Generator, slots: bool, each: int | None) -> Cluster:
    leaves = rng.integers(1, 5, rng.integers(1, 7))
    cuts = np.sort(rng.choice(np.arange(1, len(leaves)), rng.integers(0, len(leaves)), replace=False))
    made = Cluster.of("random", leaves, np.diff(np.concatenate(([0], cuts, [len(leaves)]))))
    if not slots:
        return made
    return made.with_slots(rng.integers(1, 5, made.num_nodes) if each is None else each)


def _jobs(
    rng: np.random.Generator, cluster: Cluster, policy: Allocator, choices: Mapping[str, Sequence[object]]
) -> list[Job]:
    most = np.where(rng.random(JOBS_A_WALK) < 0.3, cluster.num_nodes, min(4, cluster.num_nodes))
    heeded = {word: choices[word] for word in policy.heeds}
    columns = {word: [of[at] for at in rng.integers(len(of), size=JOBS_A_WALK)] for word, of in heeded.items()}
    every = np.zeros(JOBS_A_WALK, dtype=np.int64)
    made = Workload.of("random", submit=every, run=every + 60, nodes=rng.integers(1, most + 1), columns=columns)
    asked = requests_of(made, cluster, policy)
    return [asked.of_job(index, 60) for index in range(JOBS_A_WALK)]


def _fault(policy: Allocator, case: _Case) -> str:
    """Name the first property that the allocator lacks in this case; empty if it has all."""
    state, kept, job = case.state(policy), case.state(policy), case.job
    try:
        fits, placement, again = policy.feasible(job, state), policy.place(job, state), policy.place(job, state)
        other = policy.place(job, case.state(policy, backwards=True))
    except Exception as error:  # an allocator of a user's own may raise anything
        return f"expecting nodes or none, got {type(error).__name__}: {error}"
    for one in (placement, again, other):
        if one is not None and not isinstance(one, Placement):
            return f"expecting a Placement or None, got {type(one).__name__}"
    if not _same(_public(state), _public(kept)):
        return "expecting the state as it was before `place` and `feasible`, got another one"
    if not _alike(placement, again) or not _alike(placement, other):
        return f"expecting the same answer in the same state, got {_held(placement)}, {_held(again)}, {_held(other)}"
    if fits != (placement is not None):
        return f"expecting `feasible` and `place` to agree, got {fits} and {_held(placement)}"
    if placement is not None and (wrong := wrong_placement(policy, case.others(), job, placement)):
        return wrong
    return _claims(policy, case, fits)


def wrong_placement(policy: Allocator, others: SlotOccupancy, job: Job, placement: Placement) -> str:
    """Name the first fault of the nodes found for a job; empty if there is none.

    :param policy: the allocator that found the nodes.
    :param others: the closed nodes, and the other running jobs.
    :param job: the job.
    :param placement: the nodes, or slots, found for the job.
    """
    cluster, nodes, slots, got = others.cluster, placement.nodes, placement.slots, _held(placement)
    if not policy.names_nodes:
        return f"expecting nodes to be counted, got {got}" if len(nodes) else ""
    if nodes.dtype.kind not in "iu" or (len(nodes) and not 0 <= nodes.min() <= nodes.max() < cluster.num_nodes):
        return f"expecting nodes from 0 to {cluster.num_nodes - 1}, got {got}"
    if slots is not None and (len(slots) != len(nodes) or (slots < 0).any() or (slots >= cluster.slots[nodes]).any()):
        return f"expecting a slot of its node for each node, got {got}"
    given = cluster.slots_of(nodes, slots)
    if others.closed[nodes].any():
        return f"expecting no closed node, got {got}"
    if len(np.unique(given)) < len(given) or others.held[given].any():
        return f"expecting free slots, each once, got {got}"
    wanted, count = (job.size, len(nodes)) if slots is None else (job.slots, len(slots))
    if count < wanted or (count > wanted and not policy.holds_more) or len(given) < job.slots * job.shared:
        return f"expecting {wanted} {'nodes' if slots is None else 'slots'}, got {count}: {got}"
    if others.busy[nodes].any():
        met = [other for other, held in others.running.values() if np.isin(nodes, held.nodes).any()]
        if not all(one.shared for one in (job, *met)):
            return f"expecting nodes without a job that does not share, got {got}"
    return ""


def _claims(policy: Allocator, case: _Case, fits: bool) -> str:
    """Name the declared property, ``by_count`` or ``monotone``, that does not hold; empty if both do."""
    state, job = case.state(policy), case.job
    if policy.by_count and fits != (job.size <= state.free):
        return f"by_count: expecting nodes if and only if enough are free, got {fits} with {state.free} free"
    if policy.monotone and fits and case.running:
        gone = case.running[job.number % len(case.running)][0].number
        state.end(gone)
        if not policy.feasible(job, state):
            return f"monotone: expecting a job that fits to fit after the end of job {gone}, got none"
    return ""


def _forgetful(policy: Allocator, case: _Case, history: Occupancy) -> str:
    """Describe how the result in a state made step by step differs from that in an equal new state; empty if equal."""
    found, made = policy.place(case.job, history), policy.place(case.job, case.state(policy))
    if _alike(found, made):
        return ""
    return f"expecting the same answer however a state came about, got {_held(found)} and {_held(made)}"


def _shrink(policy: Allocator, case: _Case) -> _Case:
    """Remove running jobs and closed nodes from the case as long as the allocator still fails."""
    for job, _ in case.running:
        fewer = replace(case, running=tuple(one for one in case.running if one[0] is not job))
        case = fewer if _fault(policy, fewer) else case
    for node in case.closed:
        fewer = replace(case, closed=tuple(one for one in case.closed if one != node))
        case = fewer if _fault(policy, fewer) else case
    return case


def _public(state: Occupancy) -> dict[str, object]:
    """Return a state's public attributes and sums of free nodes, without cached results (named with an underscore)."""
    own = {name: value for name, value in vars(state).items() if not name.startswith("_")}
    return own | {"leaf_free": state.leaf_free, "pod_free": state.pod_free}


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, including arrays and attributes of objects."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return _same(vars(one), vars(other)) if hasattr(one, "__dict__") else bool(one == other)


def _alike(one: Placement | None, other: Placement | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.nodes, other.nodes) and _same(one.slots, other.slots)


def _told(job: Job) -> str:
    asks = "".join(f", {word}={value}" for word, value in job.asks.items())
    return f"job {job.number} of {job.size} nodes{asks}"


def _held(placement: Placement | None) -> str:
    if placement is None:
        return "none"
    if placement.slots is None:
        return f"nodes {placement.nodes.tolist()}"
    return f"slots {placement.slots.tolist()} of nodes {placement.nodes.tolist()}"
