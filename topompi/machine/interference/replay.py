"""Jobs side by side on one network: their times alone and together (Jokanovic 2014, sections 2.3 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...netsim import BACKGROUND, ONCE, Program, Runs, Session
from .errors import InterferenceError
from .network import SharedNetwork, components

__all__ = ["ReplayTimes", "effectiveness", "pairwise_delays", "prefers", "replay"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReplayTimes:
    """The times of jobs under one placement; only first runs are timed.

    :param names: name of each job.
    :param hosts: node of each rank, for each job.
    :param base: seconds alone on a crossbar (T_base), shape (jobs,).
    :param alone: seconds alone on the network (T_alone), shape (jobs,).
    :param sharing: seconds beside the other jobs (T_sharing), shape (jobs,).
    :param runs: times of all runs of each job beside the others.
    :param groups: jobs that share links, directly or through others, by their numbers; a group per item.
    """

    names: tuple[str, ...]
    hosts: tuple[NDArray[np.int64], ...]
    base: Floats
    alone: Floats
    sharing: Floats
    runs: tuple[Runs, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Number of nodes of each job (C), shape (jobs,)."""
        return np.array([len(np.unique(one)) for one in self.hosts])

    @property
    def intra(self) -> Floats:
        """Seconds that a job loses to its own messages (T_intra = T_alone - T_base), shape (jobs,)."""
        return self.alone - self.base

    @property
    def inter(self) -> Floats:
        """Seconds that a job loses to other jobs (T_inter = T_sharing - T_alone), shape (jobs,); it may be negative."""
        return self.sharing - self.alone

    @property
    def normalised(self) -> Floats:
        """T_sharing / T_base, shape (jobs,) (equation 3.1)."""
        return self.sharing / self.base

    @property
    def wasted(self) -> float:
        """Node-seconds lost to other jobs (J_inter, equation 2.3)."""
        return float((self.nodes * self.inter).sum())


def replay(network: SharedNetwork, programs: Sequence[Program], repeats: int = 0) -> ReplayTimes:
    """Simulate jobs alone on a crossbar, alone on the network, and together.

    Together, a job that ends begins again at once, so that its load persists. Jobs that share no link with each other
    are simulated in groups, each by itself.

    :param network: the network.
    :param programs: program of each job on the network's nodes, each with a name of its own.
    :param repeats: number of runs of each job; 0 to run each again until all jobs have run once (Dimemas' ``-r``).
    :raises InterferenceError: if two jobs have one name, or a job takes no time.
    :raises NetsimError: if a program waits forever.
    Cost: three simulations of each job.
    """
    programs = [replace(one, repeat=ONCE) for one in programs]
    names = tuple(one.name for one in programs)
    if len(set(names)) < len(names) or not names:
        raise InterferenceError(f"replay: expecting jobs with different names, got {', '.join(names) or 'none'}")
    if repeats < 0:
        raise InterferenceError(f"replay: expecting at least 0 repeats, got {repeats}")
    base = np.array([network.base_seconds(one) for one in programs])
    alone = np.array([network.seconds(one) for one in programs])
    if not base.all():
        name = names[int(np.flatnonzero(base == 0)[0])]
        raise InterferenceError(f"{name}: expecting a job that takes time, got one that takes none")
    groups = components(network, programs)
    runs = _together(network, programs, groups, repeats)
    sharing = np.array([one.seconds[0] for one in runs])
    hosts = tuple(one.hosts for one in programs)
    return ReplayTimes(names, hosts, base, alone, sharing, runs, tuple(tuple(one) for one in groups))


def pairwise_delays(network: SharedNetwork, programs: Sequence[Program], outcome: ReplayTimes) -> Floats:
    """The seconds that each job loses beside one other alone, shape (jobs, jobs): row i is delayed by column j.

    The sum of a row is no bound of the job's T_inter, because jobs delay each other, too.

    :param network: the network.
    :param programs: program of each job.
    :param outcome: result of ``replay`` for these programs.
    Cost: a simulation of each pair of jobs that share a link.
    """
    uses = np.array([network.uses(one) for one in programs])
    found = np.zeros((len(programs), len(programs)))
    for one, other in zip(*np.nonzero(np.triu(uses.astype(float) @ uses.T.astype(float), 1)), strict=True):
        pair = [programs[one], programs[other]]
        runs = _together(network, pair, [[0, 1]], 0)
        found[one, other] = runs[0].seconds[0] - outcome.alone[one]
        found[other, one] = runs[1].seconds[0] - outcome.alone[other]
    return found


def effectiveness(reference: ReplayTimes, policy: ReplayTimes) -> float | None:
    """E(P) = J_inter / J_inter(P) (equation 2.4): how many times less a policy wastes; None if it wastes nothing.

    :param reference: the jobs without the policy.
    :param policy: the same jobs with it.
    """
    return reference.wasted / policy.wasted if policy.wasted > 0 else None


def prefers(placed: ReplayTimes, wanted: ReplayTimes, arriving: int) -> bool:
    """Whether a job's other placement is better for all jobs together (equations 3.4 and 3.5).

    It is, if the interference that it saves on all jobs exceeds what it adds to the job's own T_intra.

    :param placed: outcome with the job on the nodes that are free now (F_A).
    :param wanted: outcome with the job on other nodes (F_opt).
    :param arriving: number of the job, A.
    :raises InterferenceError: if the other jobs are not the same on the same nodes.
    """
    others = [one for one in range(len(placed.names)) if one != arriving]
    same = placed.names == wanted.names and all((placed.hosts[one] == wanted.hosts[one]).all() for one in others)
    if not same:
        raise InterferenceError("prefers: expecting all other jobs on the same nodes, got other jobs or nodes")
    saved = placed.inter.sum() - wanted.inter.sum()
    return bool(saved > wanted.intra[arriving] - placed.intra[arriving])


def _together(
    network: SharedNetwork, programs: Sequence[Program], groups: Sequence[Sequence[int]], repeats: int
) -> tuple[Runs, ...]:
    """The runs of jobs beside each other.

    :param network: the network.
    :param programs: program of each job.
    :param groups: groups of jobs, by number; each is simulated by itself.
    :param repeats: number of runs of each job; 0 to repeat all until each has run once.
    """
    sessions: list[tuple[Session, dict[int, int]]] = []
    for group in groups:
        session = network.session()
        handles = {session.add(replace(programs[job], repeat=BACKGROUND)): job for job in group}
        left = set(handles)
        while left:
            for handle in session.advance():
                if handle in left and len(session.runs(handle).ends) >= max(repeats, 1):
                    left.discard(handle)
                    if repeats:
                        session.remove(handle)
        sessions.append((session, handles))
    end = max(session.now for session, _ in sessions)
    found: dict[int, Runs] = {}
    for session, handles in sessions:
        if not repeats:
            session.advance(end)
        found |= {job: session.runs(handle) for handle, job in handles.items()}
    return tuple(found[job] for job in range(len(programs)))
