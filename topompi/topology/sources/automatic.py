"""The source ``auto``: the best topology source that a job can reach without configuration."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import TopompiError
from ...inputs.settings import SOCKET
from ...inputs.slurm.commands import SHOW_TOPOLOGY, printed
from ...inputs.slurm.environment import JOB
from ..discovery import Discovery, Report
from ..routecheck import with_routes
from . import service, slurm, slurm_addresses

__all__ = ["AUTO", "SERVER", "FoundSource", "find"]

AUTO = "auto"
SERVER = "TOPOMPI_SERVER"
LACKS = "no rates, parallel cables or routes are known"


@dataclass(frozen=True)
class FoundSource:
    """The result of the search for a source.

    :param discovery: the topology; None if no source is available.
    :param words: description of the source and of the information that it lacks; if there is no source, the reasons.
    """

    discovery: Discovery | None
    words: str


def find(
    hosts: Sequence[str] | None,
    addresses: Mapping[str, tuple[str, str]],
    environment: Mapping[str, str],
    report: Report | None = None,
) -> FoundSource:
    """Try the topology service, then Slurm's addresses of the job's hosts, then the output of ``scontrol``.

    The service is the one that ``TOPOMPI_SERVER`` names, else the one at SOCKET. A source that fails is skipped, and
    the result's words contain the reason.

    :param hosts: host names of the job; None outside a job.
    :param addresses: host -> (address, pattern), see `switches_above`; ignored unless every host has an address.
    :param environment: environment variables of rank 0.
    :param report: receiver of progress.
    Cost: at most two round trips to a service, and one run of ``scontrol`` within ten seconds.
    """
    report = report or Report()
    reasons = []
    for words, read in _sources(hosts, addresses, environment, report):
        try:
            found = with_routes(read(), report)
        except (TopompiError, OSError) as error:
            reason, name = str(error), words.partition(",")[0]
            reasons.append(reason if reason.startswith(name) else f"{name}: {reason}")
            continue
        passed = f" (not {'; '.join(reasons)})" if reasons else ""
        return FoundSource(found, f"{AUTO}: {words}{passed}")
    return FoundSource(None, f"{AUTO}: {'; '.join(reasons) or 'no service, and no job of Slurm'}")


def _sources(
    hosts: Sequence[str] | None,
    addresses: Mapping[str, tuple[str, str]],
    environment: Mapping[str, str],
    report: Report,
) -> Iterator[tuple[str, Callable[[], Discovery]]]:
    """Yield the description and the reader of each source that seems to be available, best first.

    :param hosts: host names of the job; None outside a job.
    :param addresses: host -> (address, pattern) that Slurm gives the tasks on the host.
    :param environment: environment variables of rank 0.
    :param report: receiver of progress.
    """
    server = environment.get(SERVER) or (f"unix:{SOCKET}" if _is_socket(SOCKET) else "")
    if server:
        address = server if server.startswith(("tcp://", "unix:")) else f"tcp://{server}"
        yield address, lambda: service.read(address, hosts, report)
    if hosts and all(host in addresses for host in hosts):
        used = {host: addresses[host] for host in hosts}
        yield f"{slurm_addresses.NAME}, {LACKS}", lambda: slurm_addresses.read(used, report)
    if environment.get(JOB):
        yield f"{' '.join(SHOW_TOPOLOGY)}, {LACKS}", lambda: _scontrol(report)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _scontrol(report: Report) -> Discovery:
    return slurm.read([printed(SHOW_TOPOLOGY, "switches")], report)
