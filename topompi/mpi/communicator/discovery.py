"""Discovery of the topology of a communicator's ranks: rank 0 finds it once, and sends it to all ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from ...errors import HostError, ServiceError, TopompiError
from ...inputs.settings import SOCKET, word_of
from ...inputs.slurm.environment import JOB, own_address
from ...topology.inside import KINDS, ProcessPlace, host_of, own_place
from ...visible import visible
from ..execution.native import NativeIntracomm
from ..execution.rankzero import from_rank_0

if TYPE_CHECKING:
    from ...topology import Discovery, TopologyInterface

__all__ = ["find_topology"]


def find_topology(
    comm: MPI.Intracomm, topology: str | os.PathLike[str] | None = None, hosts: Sequence[str] | str | None = None
) -> TopologyInterface:
    """Find the topology of a communicator's ranks; collective.

    Only rank 0's arguments and environment count: rank 0 reads the source of the topology and sends the part that
    concerns the job to the other ranks. An error on rank 0 is raised on every rank.

    :param comm: communicator of the ranks, mpi4py's or topompi's.
    :param topology: a source (see ``topompi.topology.load``). If it is None, ``TOPOMPI_TOPOLOGY`` is used; if that is
        not set, ``auto`` if Slurm runs the job or a topology service is known, else the levels inside the hosts. With
        ``auto``, hosts that no source knows form one flat level.
    :param hosts: virtual placement: the host of each rank of ``comm``, or a shorter list of hosts, among which
        consecutive ranks are divided as evenly as possible. If it is None, ``TOPOMPI_HOSTS`` is used, one of these
        lists for the ranks of ``MPI.COMM_WORLD``; if that is not set, the ranks are on the hosts on which they run.
    :raises TopompiError: if the source cannot be read, the service does not answer, or a host is not in the source
        (with ``TOPOMPI_FALLBACK`` set to ``print`` or ``silent``, the last two cases give one flat level of hosts
        instead).

    Cost: one gather of some hundred bytes per rank, one barrier, one broadcast of the job's part of the fabric.
    """
    plain = NativeIntracomm(comm)  # never topompi's class, whose methods need the topology that is sought here
    world_rank = MPI.COMM_WORLD.Get_rank()
    facts = plain.gather(RankFacts(MPI.Get_processor_name(), world_rank, own_place(), own_address(os.environ)))

    def find() -> TopologyInterface:
        placed = _place(facts or [], topology, hosts)
        _ = placed.levels  # computed here and sent with the object, so that the other ranks need not compute them
        return placed

    return from_rank_0(plain, find)


class RankFacts(NamedTuple):
    """The facts that a rank knows about its place in the machine.

    :param name: name of the rank's host, as ``MPI.Get_processor_name`` returns it.
    :param world_rank: the rank's number in ``MPI.COMM_WORLD``.
    :param place: package, NUMA node and cache of the CPUs on which the rank runs, and ids of the host's adapters.
    :param address: the names of the switches above the host and the pattern of that text, both from Slurm; None outside
        a job of Slurm.
    """

    name: str
    world_rank: int
    place: ProcessPlace
    address: tuple[str, str] | None


def _place(
    facts: Sequence[RankFacts], topology: str | os.PathLike[str] | None, hosts: Sequence[str] | str | None
) -> TopologyInterface:
    """The topology interface of the job, made on rank 0 from the facts of all ranks."""
    from ...topology import TopologyInterface  # imported here, because only rank 0 needs the readers of sources

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
    try:
        interface = TopologyInterface.place(
            names,
            None if discovery is None else discovery.routes,
            source=words,
            virtual=pretended is not None,
            missing="error" if fallback == "error" else "flat",
        )
    except HostError as error:
        way = "" if pretended is not None else "; a virtual placement names the job's hosts: --hosts, or TOPOMPI_HOSTS"
        raise HostError(f"{error}{way}") from error
    if discovery is not None and interface.routes is not None:
        interface = replace(interface, served=discovery.served)
    if topology is not None and interface.routes is None and fallback == "print":
        print(f"topompi: {visible(interface.describe())}", flush=True)
    if pretended is None:
        interface = interface.with_domains(_domains([fact.place.domains for fact in facts]))
    return interface


def _domains(of_ranks: Sequence[Mapping[str, int]]) -> list[tuple[str, list[int]]]:
    """The names of the domains inside hosts (package, NUMA node, cache), coarsest first, each with a list.

    The list has the number of each rank's domain, -1 if it is unknown.
    """
    known = {kind for domains in of_ranks for kind in domains}
    return [(kind, [domains.get(kind, -1) for domains in of_ranks]) for kind in KINDS if kind in known]


def _default_source() -> str | None:
    """The default source: ``auto`` in a job of Slurm or if a topology service is known, else None."""
    told = any(os.environ.get(name) for name in ("TOPOMPI_SERVER", JOB))
    return "auto" if told or os.path.exists(SOCKET) else None


def _discover(
    topology: str | os.PathLike[str] | None, names: Sequence[str], facts: Sequence[RankFacts], fallback: str
) -> tuple[Discovery | None, str]:
    """The topology and a text about its origin; if the job runs without a topology, None and the reason for that."""
    if topology is None:
        return None, ""
    from ...topology.sources import automatic, load  # slow to import: only rank 0 needs it

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
    """The virtual host of each rank; None if the placement is real."""
    if hosts is None:
        listed = os.environ.get("TOPOMPI_HOSTS")
        of_world = _in_blocks(MPI.COMM_WORLD.Get_size(), listed) if listed else None
        return None if of_world is None else [of_world[rank] for rank in world_ranks]
    if isinstance(hosts, str):
        return _in_blocks(len(world_ranks), hosts)
    if len(hosts) != len(world_ranks):
        raise TopompiError(f"hosts: expecting one for each of {len(world_ranks)} ranks, got {len(hosts)}")
    return list(hosts)


def _in_blocks(ranks: int, hosts: str) -> list[str]:
    """The host of each rank, if consecutive ranks are divided among a list of hosts as evenly as possible."""
    from ...inputs.hostlist import read_hosts
    from ...mapping.placement import place  # imports all of ``mapping``, and most jobs have a real placement

    return place(ranks, read_hosts(hosts), "block")


def _host_in_source(rank_hosts: Sequence[str], rank: int, source: str) -> str:
    if rank >= len(rank_hosts):
        raise TopompiError(f"{source}: expecting a line for rank {rank}, got {len(rank_hosts)} lines")
    return rank_hosts[rank]
