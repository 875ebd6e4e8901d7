"""The exceptions that topompi raises. Each also derives from a builtin exception, so callers may catch either."""

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
    """Base class of all errors that topompi raises itself; control characters in the message are escaped."""

    def __str__(self) -> str:
        return visible(super().__str__())


class SourceError(TopompiError, ValueError):
    """A topology source cannot be read; the message names the file, the line and what is expected there."""


class ServiceError(SourceError):
    """A topology service cannot be reached, does not answer in time, or refuses the request."""


class FabricError(TopompiError, ValueError):
    """A fabric contradicts itself, for example by a duplicate host, an unknown switch or a link with one end."""


class RouteError(TopompiError, ValueError):
    """A route has a loop, ends before its destination, or does not exist."""


class HostError(TopompiError, LookupError):
    """A host of the job is not part of the fabric."""


class BenchmarkError(TopompiError, ValueError):
    """A benchmark cannot do what the user asked for."""


class MPILibraryError(TopompiError, ImportError):
    """mpi4py finds no MPI library that it can load."""


class OutputError(TopompiError, OSError):
    """An output path names something other than a regular file, or a file of another user."""


class SettingError(TopompiError, ValueError):
    """An environment variable of topompi has an unknown name or an invalid value."""
