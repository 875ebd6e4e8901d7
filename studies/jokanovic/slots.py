"""Two jobs that alternate between packets and computation share one link, slot by slot, in virtual lanes.

It is the toy model of Jokanovic 2014, figures 5.3 to 5.5. In each slot the link sends one packet of one job. A job that
has no packet in its turn ends it early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topompi.machine.interference.errors import InterferenceError

__all__ = ["Alternating", "progress"]


@dataclass(frozen=True)
class Alternating:
    """A job that sends some packets, then computes for some slots, and begins again.

    :param packets: number of packets of each round, 1 or more.
    :param compute: number of slots of computation after them.
    :param weight: number of packets that the job's lane sends per turn, 1 or more.
    """

    packets: int
    compute: int
    weight: int = 1

    def __post_init__(self) -> None:
        if self.packets < 1 or self.compute < 0 or self.weight < 1:
            raise InterferenceError(f"slots: expecting packets and a weight of at least 1, got {self}")

    def sends(self, done: int) -> bool:
        """Whether the job has a packet to send after it sent or computed in a number of slots."""
        return done % (self.packets + self.compute) < self.packets


def progress(jobs: Sequence[Alternating], slots: int) -> list[int]:
    """Number of slots in which each job sent or computed, with the lane of the first job first.

    Arbitration is weighted round robin and work-conserving. A turn has as many packets as the lane's weight, whatever
    the previous turn left.

    :param jobs: the jobs, each on its own lane, in the order of their turns.
    :param slots: number of slots.
    """
    done, turn, left = [0] * len(jobs), 0, jobs[0].weight if jobs else 0
    for _ in range(slots):
        wants = [job.sends(count) for job, count in zip(jobs, done, strict=True)]
        while any(wants) and not (left and wants[turn]):
            turn = (turn + 1) % len(jobs)
            left = jobs[turn].weight
        for at, want in enumerate(wants):
            done[at] += not want or at == turn
        left -= any(wants)
    return done
