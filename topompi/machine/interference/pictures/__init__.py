"""Pictures of jobs that share a network: their usage of each level, and their runs side by side."""

from pathlib import Path

from ....inputs import figures
from ..errors import InterferenceError

__all__ = ["check_plot"]


def check_plot(path: Path) -> None:
    """Check, before any long work, that the file name's suffix is supported and matplotlib is installed.

    :param path: path of the picture.
    :raises InterferenceError: if the suffix is neither .svg nor .png, or matplotlib is missing.
    """
    figures.check_plot(path, "--draw", InterferenceError)
