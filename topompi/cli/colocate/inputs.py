"""The files of ``topompi colocate``: profiles, bounds of a system, and speed-ups, told apart by their content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...inputs.files import read_text
from ...machine.colocation.errors import ColocationError
from ...machine.colocation.pairing.pool import Knowledge
from ...machine.colocation.profiles.files import PROFILES, read_profiles, read_system
from ...machine.colocation.profiles.record import Profile, merged
from ...machine.colocation.profiles.system import System
from ...machine.colocation.speedups.files import read_speedups
from ...machine.colocation.speedups.matrix import Speedups

__all__ = ["merge_all", "read_knowledge", "system_for"]


def read_knowledge(paths: Sequence[Path], system: Path | None, stream: float = 0.0) -> Knowledge:
    """Read the facts about programs from files.

    :param paths: files of profiles, and at most one file of speed-ups.
    :param system: file of a machine's bounds; None to take the bounds from the profiles.
    :param stream: best rate of STREAM on a node in bytes per second, if there is no file of bounds; 0 if unknown.
    :raises ColocationError: if a file is malformed, or two files contradict each other.
    """
    speedups: Speedups | None = None
    profiles: list[Profile] = []
    for path in paths:
        if _is_profiles(path):
            profiles += read_profiles(path)
        elif speedups is None:
            speedups = read_speedups(path)
        else:
            raise ColocationError(f"{path}: expecting one file of speed-ups, got a second one")
    found = merge_all(profiles)
    return Knowledge(found, system_for(list(found.values()), system, stream), speedups)


def merge_all(profiles: Sequence[Profile]) -> dict[str, Profile]:
    """Return the profile of each program, by name; several profiles of a program complete each other.

    :param profiles: the profiles.
    :raises ColocationError: if two profiles of a program contradict each other.
    """
    found: dict[str, Profile] = {}
    for one in profiles:
        found[one.program] = merged(found[one.program], one) if one.program in found else one
    return found


def system_for(profiles: Sequence[Profile], path: Path | None, stream: float = 0.0) -> System | None:
    """Return the bounds in a file, or those that contain the profiles; None if no profile has metrics.

    :param profiles: the profiles.
    :param path: file of bounds; None if there is none.
    :param stream: best rate of STREAM on a node in bytes per second; 0 if unknown.
    """
    if path is not None:
        return read_system(path)
    if all("flops" in one.missing for one in profiles):
        return None
    return System.observed("these profiles", profiles, stream)


def _is_profiles(path: Path) -> bool:
    return str(PROFILES["format"]) in read_text(path, ColocationError, "profiles or speed-ups")[:200]
