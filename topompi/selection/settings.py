"""The variables of the environment that topompi reads, and whether they are as wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache

from ..errors import SettingError

__all__ = ["FALLBACKS", "PREFIX", "TUNE", "VARIABLES", "check_settings", "map_quality", "unknown"]

PREFIX = "TOPOMPI_"
TUNE = ("", "measure", "again", "off")
FALLBACKS = ("error", "print", "silent")
ALIKE = 0.85  # of a name and one of ours, by difflib's measure: then it is taken for a slip of the pen

# name -> what it says, in a line; README.md has the whole of it.
VARIABLES = {
    "TOPOMPI_TOPOLOGY": "topology source, where the program names none",
    "TOPOMPI_HOSTS": "virtual placement: a host list over the ranks of MPI.COMM_WORLD",
    "TOPOMPI_FALLBACK": f"where a host is not in the topology: {', '.join(FALLBACKS)}",
    "TOPOMPI_RULES": "rules file",
    "TOPOMPI_TUNE": f"what may be measured: nothing new (empty), {', '.join(TUNE[1:])}",
    "TOPOMPI_VERBOSE": "1: a table of all calls at the end",
    "TOPOMPI_CHECK": "1: arguments are compared across ranks before each collective",
    "TOPOMPI_MAP_QUALITY": "mapping stops at this part of the given order's objective, 0 to 1",
    "TOPOMPI_PROFILE": "file for what the program sends (docs/profile.md)",
    "TOPOMPI_EMULATE_STATE": "folder in which emulated networks are kept",
    "TOPOMPI_SHARED_DATA": "folder of real data, for tests",
}


def check_settings(environment: Mapping[str, str], *, speaks: bool = True) -> None:
    """Refuse variables that are not as wanted; what was sound is not looked at again.

    :param environment: where they stand.
    :param speaks: whether to name, on standard error, variables that look like ours and are not.
    :raises TopompiError: for a value that is not as wanted, a rules file that is not, or a name that is nearly one of
        ours.
    """
    _check(tuple(sorted(item for item in environment.items() if item[0].startswith(PREFIX))), speaks)


def unknown(environment: Mapping[str, str]) -> list[str]:
    """The names that begin as ours do and are none of them."""
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in VARIABLES)


@lru_cache(maxsize=8)
def _check(variables: tuple[tuple[str, str], ...], speaks: bool) -> None:
    values = dict(variables)
    for name in unknown(values):
        from difflib import get_close_matches  # most jobs have no such name

        meant = get_close_matches(name, VARIABLES, 1, ALIKE)
        if meant:
            raise SettingError(f"{name}: expecting a variable that topompi has, such as {meant[0]}")
        if speaks:
            print(f"topompi: {name}: no variable of topompi's, and left alone", file=sys.stderr, flush=True)
    tune, fallback = values.get("TOPOMPI_TUNE", ""), values.get("TOPOMPI_FALLBACK", "")
    if tune not in TUNE:
        raise SettingError(f"TOPOMPI_TUNE: expecting one of {', '.join(TUNE[1:])}, got {tune!r}")
    if fallback not in ("", *FALLBACKS):
        raise SettingError(f"TOPOMPI_FALLBACK: expecting one of {', '.join(FALLBACKS)}, got {fallback}")
    map_quality(values)
    if values.get("TOPOMPI_RULES"):
        from .rules import Rules  # with all generators of schedules: most jobs have no rules

        Rules.read(values["TOPOMPI_RULES"])


def map_quality(environment: Mapping[str, str], error: type[Exception] = SettingError) -> float:
    """The part of the given order's objective that is good enough: ``TOPOMPI_MAP_QUALITY``, 0 where it is not set.

    :param environment: where it stands.
    :param error: what to raise for what is no number from 0 to 1.
    """
    written = environment.get("TOPOMPI_MAP_QUALITY") or "0"
    try:
        quality = float(written)
    except ValueError:
        quality = -1.0
    if not 0 <= quality <= 1:
        raise error(f"TOPOMPI_MAP_QUALITY: expecting a part of the given order's cost, 0 to 1, got {written!r}")
    return quality
