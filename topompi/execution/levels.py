"""The sub-communicators of a job's levels: made once, lazily, and kept with the communicator they divide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from mpi4py import MPI

from ..dispatch.known import Known
from ..dispatch.settled import unsettle
from ..schedules import Hierarchy, Network, RootedPlan
from ..selection import Choice
from ..topology import TopologyInterface
from ..views.network import network_of

if TYPE_CHECKING:
    from ..communicator.siblings import Siblings
    from ..selection import Selector

__all__ = ["Levels", "attach", "attached"]

PLANS_KEPT = 128  # plans for the latest roots and sizes; each holds O(p) numbers

BINDINGS_KEPT = 64  # programs for the latest buffers, with at most so many bytes of scratch in all
BYTES_KEPT = 1 << 26


class Kept:
    """The latest values by key, bounded in number and in weight.

    :param most: values at most.
    :param heaviest: weight of all together at most; a value of more than a quarter of it is not kept.
    """

    def __init__(self, most: int, heaviest: int) -> None:
        self._values: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._most, self._heaviest, self._weight = most, heaviest, 0

    def get(self, key: Any) -> Any:
        """The value of a key, None where it is not kept."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Any, value: Any, weight: int) -> None:
        """Keep a value under a new key."""
        if 4 * weight > self._heaviest:
            return
        self._values[key] = value, weight
        self._weight += weight
        while len(self._values) > self._most or self._weight > self._heaviest:
            self._weight -= self._values.popitem(last=False)[1][1]


class Levels:
    """The levels of one communicator: topology, sub-communicators, plans.

    The sub-communicators come from splits of the user's communicator, so their contexts are their own and our messages
    never meet the user's.

    :param comm: the user's communicator; not owned.
    :param interface: where its ranks sit.
    :param siblings: the communicators made with it, if they are known.
    :ivar only: the answer to every call, where nothing is left to choose.
    """

    def __init__(self, comm: MPI.Intracomm, interface: TopologyInterface, siblings: Siblings | None = None) -> None:
        self.interface, self.siblings = interface, siblings
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.hierarchy = Hierarchy(self.size, [level.cluster for level in interface.levels])
        self.divides = self.hierarchy.num_levels > 1  # else no level says anything
        self.usable = True  # until it is freed
        # The answer to every call where nothing is left to choose: from what all ranks know, for who chooses meanwhile
        # talks to the others.
        self.only = _only(self.size, self.divides, interface)
        self.comm = comm
        self.known = Known()
        # Handles whose methods are the MPI library's as long as this is usable, by their ``id``.
        self.settled: WeakValueDictionary[int, MPI.Intracomm] = WeakValueDictionary()
        self._parts: dict[int, MPI.Intracomm] | None = None
        self._alone: MPI.Intracomm | None = None
        self._messages: MPI.Intracomm | None = None
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

    @property
    def messages(self) -> MPI.Intracomm:
        """A duplicate of the communicator for the messages of plans; collective at its first use."""
        if self._messages is None:
            if not self.usable:
                raise RuntimeError("communicator already freed")
            self._messages = self.comm.Dup()
        return self._messages

    @cached_property
    def network(self) -> Network:
        """The network as the arrays that schedules take."""
        network = network_of(self.interface)
        return network if self.siblings is None else replace(network, beside=self.siblings.beside)

    @cached_property
    def selector(self) -> Selector:
        """What chooses the algorithms; collective at its first use."""
        from ..selection import Selector

        return Selector(self.interface, self.rank, self.comm, siblings=self.siblings)

    @cached_property
    def bindings(self) -> Kept:
        """The programs of the latest calls of plans."""
        return Kept(BINDINGS_KEPT, BYTES_KEPT)

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
        self.known.clear()
        for handle in tuple(self.settled.values()):
            unsettle(handle)
        if MPI.Is_finalized():
            return  # MPI has freed them
        for part in (self._parts or {}).values():
            part.Free()
        for own in (self._alone, self._messages):
            if own is not None:
                own.Free()
        self._parts = self._alone = self._messages = None
        self._plans.clear()
        self.__dict__.pop("bindings", None)


def _only(size: int, divides: bool, interface: TopologyInterface) -> Choice | None:
    """The answer to every call where one rank, or one host without levels of its own, is all there is; else None."""
    if size == 1:
        return Choice("native", "native: one rank")
    return Choice("native", "native: one host") if interface.num_hosts == 1 and not divides else None


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
