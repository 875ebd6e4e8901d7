"""Redraw the pictures of ``schedules.md`` and run its commands again: ``python -m docs.make_gallery``."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from topompi.mapping.placement import place
from topompi.schedules import Network
from topompi.schedules.drawing.charts import draw
from topompi.schedules.registry import make
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.scheduled import short_link_names

PAGE = Path(__file__).parent / "schedules.md"
FOLDER = Path(__file__).parent / "schedules"
CUT = Path(__file__).parent / "figures" / "cut.svg"

IN_BLOCKS = ("alltoall",)  # collectives drawn with ranks placed in blocks

# 4 leaf switches of 4 hosts with 2 ranks each, and half as many links out of a leaf switch as into it.
FABRIC, PPN = "XGFT(2; 4,4; 1,2)", 2
FULL = "XGFT(2; 4,2; 1,4)"  # for slow hosts, which stand aside
TORUS = "torus:4x4"  # for what is made for tori, with a rank on each host
PICTURES = (
    ("bcast", "dft"),
    ("bcast", "leaders"),
    ("bcast", "packed_trees"),
    ("allreduce", "halving"),
    ("allgather", "grouped"),
    ("allreduce", "swing"),
    ("allreduce", "aside"),
    ("bcast", "lanes_circulant"),
    ("alltoall", "tacs1"),
    ("alltoall", "colouring"),
)


def network_of_gallery(policy: str, fabric: str = FABRIC, ppn: int = PPN) -> tuple[TopologyInterface, Network]:
    """The example, or another fabric, with its ranks placed by a policy."""
    routes = load_routes(fabric)
    hosts = routes.fabric.hosts
    interface = TopologyInterface.place(place(ppn * len(hosts), hosts, policy), routes, virtual=True)
    return interface, network_of(interface)


def render(collective: str, algorithm: str) -> str:
    """One picture."""
    where = {"swing": (TORUS, 1), "aside": (FULL, 1)}.get(algorithm, (FABRIC, PPN))
    interface, network = network_of_gallery("block" if collective in IN_BLOCKS else "random:1", *where)
    if algorithm == "aside":
        network = _with_slow_host(network)
    schedule = make(collective, algorithm, network, blocks=2 if algorithm == "aside" else None)
    return draw(
        schedule,
        network,
        title=f"{collective} {algorithm}",
        host_names=interface.hosts,
        link_names=short_link_names(interface),
    )


def _with_slow_host(network: Network) -> Network:
    """The network in which the links of the host of rank 5, out and in, have half their rate."""
    host, capacity = int(network.rank_host[5]), network.capacity.copy()
    there, back = network.links[host, host - 1], network.links[host - 1, host]
    capacity[[there[0], back[back >= 0][-1]]] /= 2
    return replace(network, capacity=capacity)


def rerun(page: str) -> str:
    """The page with the present output of each of its commands."""

    def block(match: re.Match[str]) -> str:
        commands = [line.removeprefix("$ ") for line in match[1].splitlines() if line.startswith("$ ")]
        shown = []
        for command in commands:
            words = [sys.executable, "-m", *shlex.split(command)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
            shown.append(f"$ {command}\n" + "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines()))
        return "```console\n" + "".join(shown) + "```"

    return re.sub(r"^```console\n(.*?)^```$", block, page, flags=re.MULTILINE | re.DOTALL)


def main() -> None:
    """Draw all pictures, and bring the page's commands up to date."""
    FOLDER.mkdir(exist_ok=True)
    for picture in PICTURES:
        (FOLDER / f"{'-'.join(picture)}.svg").write_text(render(*picture), encoding="utf-8")
    PAGE.write_text(rerun(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    Path("cut.svg").replace(CUT)  # one of the commands draws it


if __name__ == "__main__":
    main()
