"""The exceptions topompi raises; each has a builtin parent, so callers may catch either."""

from .visible import visible

__all__ = [
    "BenchmarkError",
    "FabricError",
    "HostError",
    "MPILibraryError",
    "OutputError",
    "RouteError",
    "ServiceError",
    "SettingError",
    "SourceError",
    "TopompiError",
]


class TopompiError(Exception):
    """Root of every error that topompi raises on its own account; control characters of its message are escaped."""

    def __str__(self) -> str:
        return visible(super().__str__())


class SourceError(TopompiError, ValueError):
    """A topology source could not be read; the message names file, line and what should stand there."""


class ServiceError(SourceError):
    """A topology service cannot be reached, does not answer in time, or refuses what it was asked."""


class FabricError(TopompiError, ValueError):
    """A fabric contradicts itself: a host twice, an unknown switch, a link without an end."""


class RouteError(TopompiError, ValueError):
    """A route loops, dies, or does not exist."""


class HostError(TopompiError, LookupError):
    """A host of the job is not part of the fabric."""


class BenchmarkError(TopompiError, ValueError):
    """A benchmark was asked for something it cannot do."""


class MPILibraryError(TopompiError, ImportError):
    """No MPI library is there that mpi4py could load."""


class OutputError(TopompiError, OSError):
    """What has the name of a file to write is none, or another user's."""


class SettingError(TopompiError, ValueError):
    """A variable of the environment has a value, or a name, that topompi does not know."""
