"""``topompi topology discover``: collection of a network's switches, cables and routes in an archive."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import SourceError, TopompiError
from ...inputs.extensions import require_mpi
from ...inputs.slurm.environment import ADDRESS, own_address
from ...topology.discover import Gathered, Tools, from_addresses, other_ways, store
from ..quantities import SECONDS
from ..terminal import Limit

__all__ = ["discover"]

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")  # launchers' variables for the number of ranks


def discover(
    output: Annotated[Path, typer.Option("--output", "-o", help="The archive to write, such as fabric.tar.xz.")],
    seconds: Annotated[float, SECONDS("--timeout", help="Seconds that one tool may take.", min=0.1)] = 300.0,
    adapter: Annotated[
        str | None, typer.Option("--adapter", help="Ask through this adapter: mlx5_1, or mlx5_1:2 for its port 2.")
    ] = None,
    limit: Limit = None,
) -> None:
    """Ask the fabric for its switches, cables and routes, and keep the answer in an archive, which is a source.

    Run alone, it calls ibnetdiscover and dump_fts, which need an administrator's rights; without these rights it lists
    other ways to get a topology. Run on all ranks of a Slurm job (by srun or mpirun), it collects from each rank the
    switches that Slurm names above the rank's host. The exit code is 1 if a check of the archive failed; the archive is
    written all the same.
    """
    if not output.parent.is_dir():  # checked before minutes of work
        raise SourceError(f"{output}: expecting a folder to write it into, got none")
    ranks = max(int(os.environ.get(name, "1")) for name in SIZES)
    if ranks > 1:
        passed = _in_job(output, ranks)
    else:
        name, colon, port = (adapter or "").partition(":")
        if colon and not (port.isascii() and port.isdigit() and 0 < int(port[:4]) < 255):
            raise SourceError(f"--adapter: expecting NAME or NAME:PORT, with a port from 1 to 254, got {adapter!r}")
        options = (*(("-C", name) if name else ()), *(("-P", port) if port else ()))
        passed = _tried(Tools(seconds, _say, options).gather, output, dict(os.environ))
    if not passed:
        raise typer.Exit(1)


def _tried(gather: Callable[[Path], Gathered], output: Path, environment: dict[str, str]) -> bool:
    """Gather a topology and write the archive; if that fails, print the reason, and other ways to get a topology.

    :param gather: function that takes a folder, and writes the gathered files there.
    :param output: path of the archive.
    :param environment: environment variables, by which the other ways are chosen.
    :returns: True if all checks of the archive passed.
    """
    try:
        return _keep(gather, output)
    except (TopompiError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        _say(str(error))
        for way in other_ways(environment, str(output)):
            _say(f"instead: {way}")
        return False


def _keep(gather: Callable[[Path], Gathered], output: Path) -> bool:
    """Gather into a temporary folder, write the archive, and print its numbers of hosts and links and its problems.

    :param gather: function that takes a folder, and writes the gathered files there.
    :param output: path of the archive.
    :returns: True if all checks of the archive passed.
    """
    with tempfile.TemporaryDirectory(prefix="topompi-") as name:
        manifest = store(gather(Path(name)), output, _say)
    counts: dict[str, Any] = manifest["counts"]
    some = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("hosts", "adapters", "switches", "links"))
    print(f"{output}: {some}; routes: {counts['routes']}", flush=True)
    for name, check in manifest["checks"].items():
        for problem in check["problems"]:
            print(f"problem: {problem}", file=sys.stderr)
        _say(f"check: {name}: {'yes' if check['passed'] else 'no, problems: ' + str(check['count'])}")
    return all(check["passed"] for check in manifest["checks"].values())


def _in_job(output: Path, ranks: int) -> bool:
    """Collect from every rank the switches that Slurm names above its host; rank 0 writes the archive.

    :param output: path of the archive.
    :param ranks: number of ranks that the launcher started.
    :returns: True, on all ranks, if all checks of the archive passed.
    """
    require_mpi()
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.Get_size() == 1:  # no common job, so that each rank would write only its own host
        raise SourceError(
            f"expecting {ranks} ranks in one MPI job, got ranks alone: is the launcher the MPI library's?"
        )
    told = world.gather((MPI.Get_processor_name(), own_address(os.environ)))
    # Slurm's variable is left out, so that on failure the way that has just failed is not among the recommended ways.
    others = {name: value for name, value in os.environ.items() if name != ADDRESS}
    passed = told is None or _tried(lambda folder: from_addresses(told, folder), output, others)
    return bool(world.bcast(passed))  # no rank ends before this, because mpirun then ends all


def _say(words: str) -> None:
    print(f"topompi: {words}", file=sys.stderr, flush=True)
