"""topompi: MPI collectives and rank placement that follow the network's topology.

``topompi.Intracomm`` wraps a communicator, so that its collectives follow the switches; ``topompi.topology``
reads and queries fabrics without MPI. mpi4py is imported when a communicator class is first used, not before.
"""

# ``python -m topompi`` runs this file before the guard has checked the current directory, so it imports nothing at the
# top, not even ``typing``: see ``guard``.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .mpi.communicator import (
        Cartcomm,
        Distgraphcomm,
        Graphcomm,
        Intercomm,
        Intracomm,
        choice_of,
        exchange,
        interface,
        mapping_report,
        refreshed,
        remap,
        sub_communicators,
    )
    from .mpi.profile import record as profile

__all__ = [
    "Cartcomm",
    "Distgraphcomm",
    "Graphcomm",
    "Intercomm",
    "Intracomm",
    "__version__",
    "choice_of",
    "exchange",
    "interface",
    "mapping_report",
    "profile",
    "refreshed",
    "remap",
    "sub_communicators",
]
__version__ = "0.2.0"
ROOMS = (
    "errors",
    "machine",
    "mapping",
    "mpi",
    "netsim",
    "network",
    "schedules",
    "topology",
    "views",
)  # public packages; each is imported at its first use
FORMER = {
    **dict.fromkeys(("communicator", "dispatch", "execution", "launcher", "prediction"), "mpi"),
    **dict.fromkeys(("probe", "profile", "selection", "tuning"), "mpi"),
    **dict.fromkeys(("colocation", "daemon", "interference", "jobs", "shutter", "slurm"), "machine"),
}  # packages that stood here up to 0.2, and the half that has them now; goes with 0.4


class _Former:
    """A finder that tells who imports a package by its former path the present one."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        room = name.removeprefix(f"{__name__}.")
        if room in FORMER and room != name:
            raise ModuleNotFoundError(f"{name} is now {__name__}.{FORMER[room]}.{room}")


def _tell_former_paths() -> None:
    from sys import meta_path

    meta_path.append(_Former)


_tell_former_paths()


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ROOMS:
        return import_module(f".{name}", __name__)
    if name == "profile":
        from .mpi.profile import record

        return record
    if name in __all__:
        from .inputs.extensions import require_mpi

        require_mpi()
        import os

        from .mpi import communicator

        if os.environ.get("TOPOMPI_PROFILE"):
            from .mpi.profile.live import record_from_environment

            record_from_environment()
        if os.environ.get("TOPOMPI_SHUTTER") == "1":
            from .mpi.communicator.collectives import count_calls

            count_calls(import_module(".machine.shutter.published", __name__).count_call)
        found = globals()[name] = getattr(communicator, name)
        return found
    if name in FORMER:
        raise AttributeError(f"{__name__}.{name} is now {__name__}.{FORMER[name]}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names of the package, whether imported yet or not."""
    return sorted({*__all__, *ROOMS, *(name for name in globals() if name.startswith("__"))})
