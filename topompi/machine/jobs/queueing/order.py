"""Orders of waiting jobs; jobs with equal keys keep the order of their arrival."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....inputs.extensions import names_function
from ..errors import JobsError
from ..named import made_by
from ..workload import Workload

__all__ = ["FCFS", "ORDERS", "SAF", "SJF", "XF", "Multifactor", "Order", "find_order"]

Keys = NDArray[np.float64] | NDArray[np.int64]


class Order:
    """The base class of orders of waiting jobs by ascending key.

    Keys of an order that is ``fixed`` are computed once per job, those of other orders before every pass over the
    queue.
    """

    name = ""
    fixed = True

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return the keys of these jobs at second ``now``, shape (n,)."""
        raise NotImplementedError

    def ended(self, user: int, node_seconds: int, now: int) -> None:
        """Take note of the end of a job; most orders ignore it.

        :param user: number of the job's user, -1 if unknown.
        :param node_seconds: node-seconds that the job used.
        :param now: the present second.
        """


class FCFS(Order):
    """An order by arrival (first come, first served)."""

    name = "fcfs"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return the second of each job's arrival, shape (n,)."""
        return jobs.submit


class SJF(Order):
    """An order by estimate, the shortest first."""

    name = "sjf"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return each job's estimated run time in seconds, shape (n,)."""
        return jobs.estimate


class SAF(Order):
    """An order by area (estimate times nodes), the smallest first."""

    name = "saf"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return each job's area (estimate times nodes) in node-seconds, shape (n,)."""
        return jobs.estimate * jobs.nodes


class XF(Order):
    """An order by expansion factor, (wait + estimate) over estimate, the largest first."""

    name = "xf"
    fixed = False

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return the negative of each job's wait over its estimate, shape (n,), so that the largest comes first."""
        return -(now - jobs.submit) / np.maximum(jobs.estimate, 1)


class Multifactor(Order):
    """An order as by Slurm's priority/multifactor: the largest weighted sum of age, size and fair share first.

    Age is the wait divided by ``max_age``, at most 1. Size is the number of nodes divided by that of the largest
    waiting job. Fair share is 2^(-usage / share), where all users have equal shares, and a user's usage (node-seconds)
    halves every ``half_life``; it is 1 for an unknown user.

    :param age: weight of the age.
    :param size: weight of the size.
    :param share: weight of the fair share.
    :param max_age: seconds after which age no longer grows.
    :param half_life: seconds in which past usage halves.
    """

    name = "multifactor"
    fixed = False

    def __init__(
        self,
        age: float = 1000,
        size: float = 1000,
        share: float = 1000,
        max_age: int = 7 * 86400,
        half_life: int = 7 * 86400,
    ) -> None:
        if max_age <= 0 or half_life <= 0:
            raise JobsError(f"multifactor: expecting positive max_age and half_life, got {max_age} and {half_life}")
        self.age, self.size, self.share, self.max_age, self.half_life = age, size, share, max_age, half_life
        self._usage: dict[int, float] = {}
        self._since = 0

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Return the negative of each job's priority, shape (n,), so that the largest priority comes first."""
        age = np.minimum(1, (now - jobs.submit) / self.max_age)
        size = jobs.nodes / int(jobs.nodes.max())
        users = jobs.user
        total = sum(self._usage.values()) or 1.0
        used = np.array([self._usage.get(user, 0.0) for user in users.tolist()]) / total
        fair = np.where(users < 0, 1, 2.0 ** (-used * max(1, len(self._usage))))
        return -(self.age * age + self.size * size + self.share * fair)

    def ended(self, user: int, node_seconds: int, now: int) -> None:
        """Add node-seconds to the user's usage, after the decay of all users' usage until now.

        :param user: number of the job's user.
        :param node_seconds: node-seconds that the job used.
        :param now: the present second.
        """
        decay = 0.5 ** ((now - self._since) / self.half_life)
        self._usage = {one: used * decay for one, used in self._usage.items()}
        self._since = now
        self._usage[user] = self._usage.get(user, 0.0) + node_seconds


ORDERS: dict[str, Callable[[], Order]] = {one.name: one for one in (FCFS, SJF, SAF, XF, Multifactor)}


def find_order(name: str | Order) -> Order:
    """Return a new order of this name, or the argument if it is an order; ``module:function`` makes a user's own.

    :raises JobsError: if the name is unknown, or the function makes no order.
    """
    if isinstance(name, Order):
        return name
    if name in ORDERS:
        return ORDERS[name]()
    if not names_function(name):
        raise JobsError(f"order: expecting one of {', '.join(ORDERS)}, or a module:function, got {name!r}")
    made = made_by(name, Order, JobsError)
    made.name = made.name or name
    return made
