"""Rank 0 finds the topology of a communicator's ranks once, and sends it to all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mpi4py import MPI

from ..errors import HostError, ServiceError, TopompiError
from ..execution.native import NativeIntracomm
from ..execution.rankzero import from_rank_0
from ..inputs.settings import SOCKET, word_of
from ..inputs.slurm.environment import JOB, own_address
from ..topology.inside import KINDS, Place, host_of, own_place
from ..visible import visible

if TYPE_CHECKING:
    from ..topology import Discovery, TopologyInterface

__all__ = ["find_topology"]


def find_topology(
    comm: MPI.Intracomm, topology: str | os.PathLike[str] | None = None, hosts: Sequence[str] | str | None = None
) -> TopologyInterface:
    """Find the topology of a communicator's ranks; collective.

    Rank 0's arguments and environment count: it reads the source, the others get the job's part of it. An error at
    rank 0 is raised on every rank.

    :param comm: the ranks to find; of the MPI library's own kind or of ours.
    :param topology: a source (see ``topompi.topology.load``); else ``TOPOMPI_TOPOLOGY``; else, in a job of Slurm and
        where a service is known, ``auto``; else the hosts' own levels. With ``auto`` hosts that no source knows are
        one flat level.
    :param hosts: virtual placement: host of each rank of ``comm``, or a host list filled in blocks; else
        ``TOPOMPI_HOSTS``, a host list over the ranks of ``MPI.COMM_WORLD``, in blocks where it is shorter; else the
        hosts where the ranks run.
    :raises TopompiError: for a source that cannot be read, a service that does not answer, or hosts that are not in it
        (with ``TOPOMPI_FALLBACK`` as ``print`` or ``silent`` the latter two make one flat level of hosts).
    Cost: one gather of some hundred bytes a rank, one barrier, one broadcast of the job's part of the fabric.
    """
    plain = NativeIntracomm(comm)  # never one of ours: this is how ours begin
    world_rank = MPI.COMM_WORLD.Get_rank()
    facts = plain.gather(Facts(MPI.Get_processor_name(), world_rank, own_place(), own_address(os.environ)))

    def find() -> TopologyInterface:
        placed = _place(facts or [], topology, hosts)
        _ = placed.levels  # worked out once and sent along: the others need not do it again, all at once
        return placed

    return from_rank_0(plain, find)


class Facts(NamedTuple):
    """What a rank knows of its place.

    :param name: the processor's, as MPI has it.
    :param world_rank: rank in ``MPI.COMM_WORLD``.
    :param place: inside its host, and the host's adapters.
    :param address: what Slurm says of the switches above the host, and the pattern of that; None without Slurm.
    """

    name: str
    world_rank: int
    place: Place
    address: tuple[str, str] | None


def _place(
    facts: Sequence[Facts], topology: str | os.PathLike[str] | None, hosts: Sequence[str] | str | None
) -> TopologyInterface:
    """The job's view at rank 0, from what each rank said."""
    from ..topology import TopologyInterface  # as what reads sources: rank 0 alone needs it now

    topology = topology or os.environ.get("TOPOMPI_TOPOLOGY") or _default_source()
    fallback = word_of("TOPOMPI_FALLBACK", os.environ) or ("silent" if topology == "auto" else "error")
    world_ranks = [fact.world_rank for fact in facts]
    pretended = _pretended_hosts(hosts, world_ranks)
    names = pretended or [fact.name for fact in facts]
    discovery, words = _discover(topology, names, facts, fallback)
    if pretended is None and discovery is not None and discovery.rank_hosts is not None:
        names = [_host_in_source(discovery.rank_hosts, rank, str(topology)) for rank in world_ranks]
    elif pretended is None and discovery is not None:
        names = [host_of(discovery.fabric, fact.place.guids) or fact.name for fact in facts]
    interface = TopologyInterface.place(
        names,
        None if discovery is None else discovery.routes,
        source=words,
        virtual=pretended is not None,
        missing="error" if fallback == "error" else "flat",
    )
    if discovery is not None and interface.routes is not None:
        interface = replace(interface, served=discovery.served)
    if topology is not None and interface.routes is None and fallback == "print":
        print(f"topompi: {visible(interface.describe())}", flush=True)
    if pretended is None:
        interface = interface.with_domains(_domains([fact.place.domains for fact in facts]))
    return interface


def _domains(of_ranks: Sequence[Mapping[str, int]]) -> list[tuple[str, list[int]]]:
    """The number of each rank's part of each kind that some host has, coarsest first; -1 where it has none."""
    known = {kind for domains in of_ranks for kind in domains}
    return [(kind, [domains.get(kind, -1) for domains in of_ranks]) for kind in KINDS if kind in known]


def _default_source() -> str | None:
    """``auto`` in a job of Slurm, or where a service is known; None, which costs nothing, elsewhere."""
    told = any(os.environ.get(name) for name in ("TOPOMPI_SERVER", JOB))
    return "auto" if told or os.path.exists(SOCKET) else None


def _discover(
    topology: str | os.PathLike[str] | None, names: Sequence[str], facts: Sequence[Facts], fallback: str
) -> tuple[Discovery | None, str]:
    """What the source says, None where there is nothing and the job goes on without it; and where from, or why not."""
    if topology is None:
        return None, ""
    from ..topology.sources import automatic, load  # what reads all formats takes time to import; one rank needs it

    if topology == automatic.AUTO:
        addresses = {fact.name: fact.address for fact in facts if fact.address is not None}
        found = automatic.find(list(dict.fromkeys(names)), addresses, os.environ)
        return found.discovery, found.words if found.discovery is not None else f"hosts only: {found.words}"
    try:
        return load(topology, hosts=names), str(topology)
    except (ServiceError, HostError) as error:
        if fallback == "error":
            raise
        return None, f"hosts only: {error}"


def _pretended_hosts(hosts: Sequence[str] | str | None, world_ranks: Sequence[int]) -> list[str] | None:
    """The virtual host of each rank, None where placement is real."""
    listed: Any = os.environ.get("TOPOMPI_HOSTS")
    if hosts is None and not listed:
        return None
    if hosts is not None and not isinstance(hosts, str):
        if len(hosts) != len(world_ranks):
            raise TopompiError(f"hosts: expecting one for each of {len(world_ranks)} ranks, got {len(hosts)}")
        return list(hosts)
    from ..inputs.hostlist import read_hosts
    from ..mapping.placement import place  # with all of ``mapping``: most jobs run where they run

    if hosts is not None:
        return place(len(world_ranks), read_hosts(hosts), "block")
    of_world = place(MPI.COMM_WORLD.Get_size(), read_hosts(listed), "block")
    return [of_world[rank] for rank in world_ranks]


def _host_in_source(rank_hosts: Sequence[str], rank: int, source: str) -> str:
    if rank >= len(rank_hosts):
        raise TopompiError(f"{source}: expecting a line for rank {rank}, got {len(rank_hosts)} lines")
    return rank_hosts[rank]
