"""Choice of hosts and slots for a job's ranks, and the machine, made of them, on which mappers place ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SettingError
from ..inputs.hostlist import ALL, read_hosts
from ..inputs.slurm.environment import SLOTS, hosts_of_job, parse_slots
from ..mapping.machine import Machine
from ..topology import Routes, TopologyInterface
from .machine import machine_of

__all__ = ["Allocation", "allocation_of", "machine_on"]

MOST_ROUTED = 1024  # hosts; a machine of more hosts has no routes, because they would take gigabytes


@dataclass(frozen=True)
class Allocation:
    """The hosts for a job, with their slots (the number of ranks that each can hold).

    :param hosts: names of the hosts, each once.
    :param slots: number of ranks that each host can hold, in the order of ``hosts``.
    :param is_part: whether the hosts are the first ones of the fabric, because neither the user nor Slurm chose any.
    """

    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    is_part: bool = False


def allocation_of(
    ranks: int,
    all_hosts: Sequence[str],
    hosts: str | None = None,
    slots: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Allocation:
    """Choose hosts and slots: those of the arguments, else of the Slurm job, else the first hosts of the fabric.

    If there are no slots, the ranks are spread evenly over the chosen hosts, in blocks of consecutive ranks; but if a
    host is named k times, it has k slots.

    :param ranks: number of ranks that need a slot.
    :param all_hosts: names of the fabric's hosts, in its order.
    :param hosts: a host list, a file of hosts, or ``all``.
    :param slots: slots of each host, see `topompi.inputs.slurm.environment.parse_slots`.
    :param environment: environment variables, in which Slurm may give hosts and slots; None for no variables.
    :raises SourceError: if the host list is malformed.
    :raises SettingError: if the slots are malformed, or are given although a host is named twice.
    """
    of_job = hosts_of_job(environment or {}) if hosts is None else None
    is_named = hosts is not None or of_job is not None
    listed = of_job or (list(all_hosts) if hosts in (None, ALL) else read_hosts(str(hosts)))
    names = list(dict.fromkeys(listed))
    where = "--slots"
    if slots is None and of_job is not None:
        slots, where = (environment or {}).get(SLOTS), SLOTS
    if slots is not None:
        if len(names) < len(listed):
            raise SettingError("expecting each host once beside --slots")
        counts = parse_slots(slots, len(names), where=where)
    elif len(names) < len(listed):  # some host is repeated, which means that hosts are named once per slot
        counts = [listed.count(name) for name in names]
    else:
        counts = (ranks // len(names) + (np.arange(len(names)) < ranks % len(names))).tolist()
    filled = len(names) if is_named else min(int(np.searchsorted(np.cumsum(counts), ranks)) + 1, len(names))
    return Allocation(tuple(names[:filled]), tuple(counts[:filled]), filled < len(names))


def machine_on(routes: Routes, hosts: Sequence[str], slots: Sequence[int], source: str = "") -> Machine:
    """Make the mappers' machine for some hosts of a fabric; it has routes if there are at most MOST_ROUTED hosts.

    :param routes: the routes over the whole fabric.
    :param hosts: names of the hosts, in the order in which slots are numbered.
    :param slots: number of slots of each host, shape (hosts,).
    :param source: source of the topology, in words.
    :raises HostError: if the fabric does not have one of the hosts.
    """
    interface = TopologyInterface.place(hosts, routes, source=source, virtual=True)
    return machine_of(interface, slots, hosts, routes=len(hosts) <= MOST_ROUTED)
