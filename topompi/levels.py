"""The sub-communicators of a job's levels: made once, lazily, and kept with the communicator they divide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from schedules import Hierarchy, RootedPlan

from .topology import TopologyInterface

__all__ = ["Levels", "attach", "attached"]

PLANS_KEPT = 128  # plans for the latest roots and sizes; each holds O(p) numbers


class Levels:
    """The levels of one communicator: topology, sub-communicators, plans.

    The sub-communicators come from splits of the user's communicator, so their contexts are their own and our messages
    never meet the user's.

    :param comm: the user's communicator; not owned.
    :param interface: where its ranks sit.
    """

    def __init__(self, comm: MPI.Intracomm, interface: TopologyInterface) -> None:
        self.interface = interface
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.hierarchy = Hierarchy(self.size, [level.cluster for level in interface.levels])
        self.divides = self.hierarchy.num_levels > 1  # else no level says anything
        self.usable = True  # until it is freed
        self.comm = comm
        self._parts: dict[int, MPI.Intracomm] | None = None
        self._alone: MPI.Intracomm | None = None
        self._plans: OrderedDict[Any, Any] = OrderedDict()

    @property
    def parts(self) -> dict[int, MPI.Intracomm]:
        """Level -> this rank's sub-communicator there, for the levels where it is a member.

        Collective over the communicator at its first use: one split a level.
        """
        if not self.usable:
            raise RuntimeError("communicator already freed")
        if self._parts is None:
            levels = range(1, self.hierarchy.num_levels + 1)
            split = [self.comm.Split(self._color(level), self.rank) for level in levels]
            self._parts = {
                level: MPI.Intracomm(part) for level, part in zip(levels, split, strict=True) if part != MPI.COMM_NULL
            }
        return self._parts

    def _color(self, level: int) -> int:
        color = self.hierarchy.color(level, self.rank)
        return MPI.UNDEFINED if color < 0 else color

    @property
    def alone(self) -> MPI.Intracomm:
        """A communicator of this rank only, with a context of its own."""
        if self._alone is None:
            self._alone = MPI.Intracomm(MPI.COMM_SELF).Dup()
        return self._alone

    def plan(self, root: int) -> RootedPlan:
        """The plan of this rank for a root."""
        plan: RootedPlan = self.kept(root, lambda: self.hierarchy.plan(root, self.rank))
        return plan

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` made for a key; the latest ones are kept."""
        value = self._plans.get(key)
        if value is None:
            value = self._plans[key] = make()
            if len(self._plans) > PLANS_KEPT:
                self._plans.popitem(last=False)
        return value

    def free(self) -> None:
        """Free all sub-communicators; collective. Further use is refused, a second call does nothing."""
        if not self.usable:
            return
        self.usable = False
        if MPI.Is_finalized():
            return  # MPI has freed them
        for part in (self._parts or {}).values():
            part.Free()
        if self._alone is not None:
            self._alone.Free()
        self._parts = self._alone = None
        self._plans.clear()


_keyval = MPI.KEYVAL_INVALID


def _released(comm: MPI.Comm, keyval: int, levels: Levels) -> None:
    levels.free()


def _get_keyval() -> int:
    global _keyval
    if _keyval == MPI.KEYVAL_INVALID:
        _keyval = MPI.Comm.Create_keyval(delete_fn=_released)
    return _keyval


def attached(comm: MPI.Comm) -> Levels | None:
    """The levels kept with a communicator, None if it has none yet."""
    levels: Any = comm.Get_attr(_get_keyval())
    return levels if isinstance(levels, Levels) else None


def attach(comm: MPI.Comm, levels: Levels) -> None:
    """Keep levels with a communicator, in place of those it has; they are freed with it."""
    comm.Set_attr(_get_keyval(), levels)
