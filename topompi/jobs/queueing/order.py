"""Orders of waiting jobs; equal jobs stand in the order of their arrival."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...extensions import names_function
from ..errors import JobsError
from ..named import made_by
from ..workload import Workload

__all__ = ["FCFS", "ORDERS", "SAF", "SJF", "XF", "Multifactor", "Order", "find_order"]

Keys = NDArray[np.float64] | NDArray[np.int64]


class Order:
    """Waiting jobs stand by ascending key. A fixed order has one key a job; any other is sorted before every pass."""

    name = ""
    fixed = True

    def keys(self, jobs: Workload, now: int) -> Keys:
        """The keys of these jobs at this second, shape (n,)."""
        raise NotImplementedError

    def ended(self, user: int, node_seconds: int, now: int) -> None:
        """A job has ended; most orders do not heed it.

        :param user: whose job it was, -1 where unknown.
        :param node_seconds: that it used.
        :param now: seconds.
        """


class FCFS(Order):
    """First come, first served."""

    name = "fcfs"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Arrival."""
        return jobs.submit


class SJF(Order):
    """The shortest estimate first."""

    name = "sjf"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Estimate."""
        return jobs.estimate


class SAF(Order):
    """The smallest area first: estimate times nodes."""

    name = "saf"

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Node-seconds."""
        return jobs.estimate * jobs.nodes


class XF(Order):
    """The largest expansion factor first: (wait + estimate) over estimate."""

    name = "xf"
    fixed = False

    def keys(self, jobs: Workload, now: int) -> Keys:
        """Wait over estimate, largest first."""
        return -(now - jobs.submit) / np.maximum(jobs.estimate, 1)


class Multifactor(Order):
    """Slurm's priority/multifactor with age, size and fair share: the largest weighted sum first.

    Age is the wait over ``max_age``, at most 1; size the nodes over those of the largest waiting job; fair share
    2^(-usage / share), where usage decays by half in ``half_life`` and all users have equal shares. It is 1 for unknown
    users.

    :param age: weight of the wait; likewise ``size`` and ``share``.
    :param max_age: seconds after which age no longer grows.
    :param half_life: seconds in which past usage counts half.
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
        """Priority, largest first."""
        age = np.minimum(1, (now - jobs.submit) / self.max_age)
        size = jobs.nodes / int(jobs.nodes.max())
        users = jobs.user
        total = sum(self._usage.values()) or 1.0
        used = np.array([self._usage.get(user, 0.0) for user in users.tolist()]) / total
        fair = np.where(users < 0, 1, 2.0 ** (-used * max(1, len(self._usage))))
        return -(self.age * age + self.size * size + self.share * fair)

    def ended(self, user: int, node_seconds: int, now: int) -> None:
        """Adds to the user's usage, all usage having decayed until now.

        :param user: whose job it was.
        :param node_seconds: that it used.
        :param now: seconds.
        """
        decay = 0.5 ** ((now - self._since) / self.half_life)
        self._usage = {one: used * decay for one, used in self._usage.items()}
        self._since = now
        self._usage[user] = self._usage.get(user, 0.0) + node_seconds


ORDERS: dict[str, Callable[[], Order]] = {one.name: one for one in (FCFS, SJF, SAF, XF, Multifactor)}


def find_order(name: str | Order) -> Order:
    """A new order of this name, or the given one; ``module:function`` makes one of a user's own.

    :raises JobsError: for a name that is not there, or a function that makes no order.
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
