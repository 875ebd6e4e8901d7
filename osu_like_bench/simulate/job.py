"""The job of a simulation: ranks placed on the hosts of a topology."""

from __future__ import annotations

from topompi.errors import BenchmarkError
from topompi.inputs.hostlist import read_hosts
from topompi.mapping.placement import place as placed
from topompi.topology import Report, TopologyInterface, load_routes

__all__ = ["job_on"]


def job_on(
    topology: str, lfts: str | None, hosts: str | None, ppn: int, place: str, report: Report
) -> TopologyInterface:
    """Return the virtual job that the command's options describe.

    :param topology: a topology source.
    :param lfts: path of the source's forwarding tables; None if they are in the source.
    :param hosts: a host list, a file, or a number N for the first N hosts; if it is None, all hosts.
    :param ppn: ranks per host.
    :param place: placement policy: block, cyclic or random:SEED.
    :param report: object that shows the progress of reading.
    :raises BenchmarkError: if the hosts or the policy do not exist.
    """
    routes = load_routes(topology, lfts, report)
    names = list(routes.fabric.hosts)
    if hosts is not None and hosts.isascii() and hosts.isdigit():
        if not 1 <= int(hosts) <= len(names):
            raise BenchmarkError(f"--hosts: expecting 1 to {len(names)} hosts of {topology}, got {hosts}")
        names = names[: int(hosts)]
    elif hosts is not None:
        names = read_hosts(hosts)
    try:
        ranks = placed(ppn * len(names), names, place)
    except ValueError as error:
        raise BenchmarkError(f"--place: {error}") from error
    return TopologyInterface.place(ranks, routes, source=topology, virtual=True)
