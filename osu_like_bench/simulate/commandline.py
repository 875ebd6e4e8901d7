"""The options of ``python -m osu_like_bench simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topompi.cli.quantities import COUNT, PER_HOST, RANKS
from topompi.schedules.registry import ALGORITHMS

from ..kernels import KERNELS

SYSTEMS = ("stampede", "ranger")
NETWORKS = ("flow", "packet")

Collective = Annotated[str, typer.Argument(help=f"One of {', '.join((*ALGORITHMS, *KERNELS))}.")]
Topology = Annotated[str, typer.Option(help="A topology source, as for topompi topology show.", metavar="SOURCE")]
Algorithm = Annotated[
    str,
    typer.Option(
        "--algorithm", "-a", help="Names (ring, ring/32K), module:function, FILE.json, or all.", metavar="A,B"
    ),
]
Lfts = Annotated[str | None, typer.Option(help="Forwarding tables of the source.", metavar="FILE")]
Hosts = Annotated[str | None, typer.Option(help="A list, a file, or the first N; else all.", metavar="LIST|N")]
PerHost = Annotated[int, PER_HOST(help="Ranks on each host.")]
Sizes = Annotated[str, typer.Option("-m", "--message-size", metavar="SIZES", help="A,B,C or MIN:MAX.")]
Peers = Annotated[str, typer.Option(help="Other libraries or orders, all, or none.", metavar="A,B")]
Place = Annotated[str, typer.Option(help="block, cyclic or random:SEED.", metavar="POLICY")]
Root = Annotated[int, RANKS(help="The root of a rooted collective.", min=0)]
Grid = Annotated[str | None, typer.Option(help="Grid of processes of a kernel.", metavar="8x8x8")]
Periodic = Annotated[bool, typer.Option("--periodic", help="The grid of a kernel wraps around.")]
Faces = Annotated[str | None, typer.Option(help="Relative sizes of messages by dimension.", metavar="A,B,C")]
SecondJob = Annotated[str | None, typer.Option(help="A second job.", metavar="alltoall:SIZE")]
System = Annotated[str, typer.Option(help=f"Fills in latencies and rates: {', '.join(SYSTEMS)}.")]
Network = Annotated[str, typer.Option(help=f"The simulator: {', '.join(NETWORKS)}.")]
Seeds = Annotated[int, COUNT(help="Starts of the ranks; 0: all together.", min=0)]
Bracket = Annotated[
    bool, typer.Option("--bracket", help="Packets also with 16 KiB a port, and with one queue an input.")
]
Eager = Annotated[str | None, typer.Option(help="Below, sends do not wait.", metavar="SIZE")]
Window = Annotated[int | None, COUNT(help="Steps in flight, 0 for all.", min=0)]
Json = Annotated[Path | None, typer.Option(help="Write the record here.", metavar="FILE")]
Drawing = Annotated[Path | None, typer.Option("--draw", help="Draw to .svg or .png.", metavar="FILE")]
Jobs = Annotated[int, COUNT(help="Simulations at once.")]
MostMessages = Annotated[int, COUNT("--most-messages", help="Leave out what has more.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
