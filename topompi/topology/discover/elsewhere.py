"""Other sources of the topology for users without privileges: the service, Slurm, or probing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from ...inputs.settings import SOCKET
from ...inputs.slurm.commands import SHOW_TOPOLOGY
from ...inputs.slurm.environment import ADDRESS

__all__ = ["other_ways"]


def other_ways(environment: Mapping[str, str], archive: str) -> list[str]:
    """The ways to get a topology without privileges on this host, best first, each as a reason and a command.

    :param environment: environment variables of this process.
    :param archive: path of the archive that the user asked for.
    """
    ways = []
    server = environment.get("TOPOMPI_SERVER") or (f"unix:{SOCKET}" if os.path.exists(SOCKET) else "")
    if server:
        address = server if server.startswith(("tcp://", "unix:")) else f"tcp://{server}"
        words = "a topology service is known here, and has routes"
        ways.append(f"{words}: topompi topology export {address} -o fabric.json")
    if environment.get(ADDRESS):
        words = "Slurm tells each task the switches above its host, though no cables or routes"
        ways.append(f"{words}: srun topompi topology discover -o {archive}")
    elif shutil.which("scontrol"):
        words = "Slurm's switches, if any are configured, may be read by every user; no cables or routes"
        ways.append(f"{words}: {' '.join(SHOW_TOPOLOGY)} > topology.txt")
    if not ways:
        ways.append(
            "neither a topology service nor Slurm is here; what is near can be measured, in a job: topompi probe"
        )
    ways.append("or ask an administrator for what ibnetdiscover and dump_fts print, or for this command's archive")
    return ways
