"""``python -m topompi script.py``: an mpi4py program with a communicator of ours as its ``MPI.COMM_WORLD``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from mpi4py import MPI

    from .communicator import Intracomm
    from .profile.live import Recording

from .errors import MPILibraryError, TopompiError
from .extensions import require_mpi

__all__ = ["USAGE", "launch", "program_of"]

USAGE = """\
usage: mpirun -n N python -m topompi [options] script.py [arguments]
   or: mpirun -n N python -m topompi [options] -m module [arguments]
   or: mpirun -n N python -m topompi [options] -c code [arguments]
runs an mpi4py program whose MPI.COMM_WORLD follows the network
options:
  --verbose           print at the end what each collective did, and why
  --check[=SECONDS]   verify that all ranks make the same calls; after so many (30) seconds say who waits in which
  --map GRAPH         re-order the ranks of MPI.COMM_WORLD for who sends how much to whom, as topompi map reads it
  --topology SOURCE   see `topompi topology show`; also --hosts LIST, --rules FILE, --tune MODE, --fallback WORD:
                      all stand for TOPOMPI_TOPOLOGY, TOPOMPI_HOSTS, TOPOMPI_RULES, ...
"""

FLAGS = {"--verbose": "TOPOMPI_VERBOSE", "--check": "TOPOMPI_CHECK"}
VALUES = {f"--{name}": f"TOPOMPI_{name.upper()}" for name in ("topology", "hosts", "rules", "tune", "fallback", "map")}
PROGRAMS = ("-m", "-c", "-")


def program_of(arguments: Sequence[str]) -> str:
    """The word behind the launcher's options: a program, ``-m``, ``-c``, ``-``, or a command; else empty."""
    rest, _ = _parse(arguments)
    return "" if not rest or (rest[0].startswith("-") and rest[0] not in PROGRAMS) else rest[0]


def launch(arguments: Sequence[str]) -> None:
    """Run a program as ``python -m mpi4py`` does: an exception on one rank ends all of them.

    :param arguments: the launcher's options, the program, and its arguments.
    """
    rest, settings = _parse(arguments)
    if rest[0] in ("-m", "-c") and len(rest) < 2:
        _leave(f"expecting an argument after {rest[0]}", 2)
    os.environ.update(settings)
    try:
        require_mpi()
    except MPILibraryError as error:
        _leave(str(error), 1)
    from mpi4py.run import run_command_line, set_abort_status

    recording = _replace_world()
    sound = False
    try:
        run_command_line(rest)
        sound = True
    except (SystemExit, KeyboardInterrupt) as ended:
        set_abort_status(ended)
        sound = isinstance(ended, SystemExit) and not ended.code
        raise
    except BaseException:
        set_abort_status(1)
        raise
    finally:
        if recording is not None:
            recording.close(joint=sound)  # a rank that fails ends all: none waits for the others then


def _parse(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """What follows the launcher's options, and what these set in the environment."""
    rest, settings = list(arguments), {}
    while rest:
        name, equals, value = rest[0].partition("=")
        if name in FLAGS and not equals:
            settings[FLAGS[name]] = "1"
        elif name == "--check":
            settings[FLAGS[name]] = value
        elif name in VALUES and (equals or len(rest) > 1):
            settings[VALUES[name]] = value if equals else rest.pop(1)
        else:
            break
        del rest[0]
    return rest, settings


def _replace_world() -> Recording | None:
    """Put a communicator of ours in the place of ``MPI.COMM_WORLD``; the recording that begins, if any; collective."""
    from mpi4py import MPI

    from .communicator import Intracomm
    from .communicator.handle import pickle_by_name

    world = MPI.COMM_WORLD
    try:
        ours = _mapped(Intracomm(world))
        ours._lasts = True
        MPI.COMM_WORLD = ours  # type: ignore[misc] # final in mpi4py's stubs; programs read it here
        pickle_by_name()
        return _recording(ours)
    except (TopompiError, OSError) as error:
        _leave(str(error), 1, world.Get_rank() == 0)


def _mapped(world: Intracomm) -> Intracomm:
    """The world, its ranks re-ordered for the graph that ``TOPOMPI_MAP`` names; collective."""
    graph = os.environ.get("TOPOMPI_MAP")
    if not graph:
        return world
    from .communicator.remap.launched import in_order_of

    ordered: Intracomm = in_order_of(world, graph)
    return ordered


def _recording(world: MPI.Intracomm) -> Recording | None:
    """The recording that ``TOPOMPI_PROFILE`` asks for, with windows and persistent requests; collective."""
    if not os.environ.get("TOPOMPI_PROFILE"):
        return None
    from mpi4py import MPI

    from .profile import live, requests, windows

    MPI.Win, MPI.Prequest = windows.Win, requests.Prequest  # type: ignore[misc] # likewise
    return live.record_from_environment(world)


def _leave(why: str, status: int, speaks: bool = True) -> NoReturn:
    if speaks:
        print(f"topompi: {why}", file=sys.stderr)
    sys.exit(status)
