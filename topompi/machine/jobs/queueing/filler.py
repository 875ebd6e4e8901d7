"""The queue ``filler``, which always starts the largest waiting job that finds nodes."""

from __future__ import annotations

from .situation import Situation

__all__ = ["Filler"]


class Filler:
    """A queue that fills the machine: the waiting job with the most slots that finds nodes starts first.

    Of jobs with equal sizes the first starts, so that the order of arrival changes no more than filling needs. There
    are no reservations: large jobs may wait for long while smaller ones keep arriving.
    """

    name, order = "filler", "fcfs"

    def start_jobs(self, situation: Situation) -> None:
        """Start jobs, the largest that finds nodes first, until none does. Cost: a sort of the waiting jobs."""
        waiting, started, refused = situation.waiting, set[int](), set[int]()
        jobs = {index: situation.job(index) for index in waiting if situation.sizes[index] <= situation.state.free}
        for index in sorted(jobs, key=lambda one: -(jobs[one].slots or jobs[one].size)):
            if situation.kinds[index] in refused or situation.sizes[index] > situation.state.free:
                continue
            placement = situation.find(jobs[index], situation.state)
            if placement is None:
                refused.add(situation.kinds[index])
                continue
            situation.start(jobs[index], placement)
            started.add(index)
        if started:
            waiting[:] = [index for index in waiting if index not in started]
