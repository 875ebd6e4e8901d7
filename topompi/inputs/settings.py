"""The environment variables that topompi reads, and checks of their values."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ..errors import SettingError
from ..visible import visible
from .limits import parse_limits

__all__ = [
    "ALIKE",
    "NATIVE_CALLS",
    "SOCKET",
    "VARIABLES",
    "WORDS",
    "cache_directory",
    "check_settings",
    "map_quality",
    "native_calls",
    "patience",
    "reproducible",
    "tuning",
    "word_of",
]

PATIENCE = 30  # seconds after which the watchdog reports a call, if ``TOPOMPI_CHECK`` is 1
LONGEST_PATIENCE = 10**6  # seconds; largest value of ``TOPOMPI_CHECK``
SOCKET = "/run/topompi/topology.sock"  # default path of the socket of this host's topology service
NATIVE_CALLS = 8  # a new communicator's first small calls, left to MPI, because making a plan takes as long as 10 calls
WORDS = {
    "TOPOMPI_TUNE": ("measure", "again", "off"),
    "TOPOMPI_FALLBACK": ("error", "print", "silent"),
    "TOPOMPI_NEIGHBOURS": ("native", "hosts", "leaves"),
    "TOPOMPI_PROFILE_GRANULARITY": ("process", "host"),
    "TOPOMPI_PROFILE_COMMAND": ("masked", "whole"),
    "TOPOMPI_REPRODUCIBLE": ("0", "1"),
    "TOPOMPI_SHUTTER": ("0", "1"),
}
VARIABLES = {
    *WORDS,
    "TOPOMPI_CHECK",
    "TOPOMPI_EMULATE_STATE",
    "TOPOMPI_HOSTS",
    "TOPOMPI_MACHINE",
    "TOPOMPI_MAP",
    "TOPOMPI_MAP_QUALITY",
    "TOPOMPI_NATIVE_CALLS",
    "TOPOMPI_PRELOAD",
    "TOPOMPI_PROFILE",
    "TOPOMPI_PYTHON",
    "TOPOMPI_RULES",
    "TOPOMPI_LIMITS",
    "TOPOMPI_SERVER",
    "TOPOMPI_SHARED_DATA",
    "TOPOMPI_TOPOLOGY",
    "TOPOMPI_VERBOSE",
}
ALIKE = 0.85  # difflib similarity from which an unknown variable counts as a misspelt name of topompi's


def cache_directory() -> Path:
    """Return topompi's cache folder: ``$XDG_CACHE_HOME/topompi``, else ``~/.cache/topompi``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "topompi"


def check_settings(environment: Mapping[str, str], *, speaks: bool = True) -> None:
    """Raise an error if a variable of topompi's has a malformed value; a sound environment is not checked again.

    :param environment: the environment variables.
    :param speaks: whether unknown variables that begin with ``TOPOMPI_`` are reported on standard error.
    :raises TopompiError: if a value is malformed, or an unknown name is nearly one of ours.
    """
    _check(tuple(sorted(item for item in environment.items() if item[0].startswith("TOPOMPI_"))), speaks)


@lru_cache(maxsize=8)
def _check(variables: tuple[tuple[str, str], ...], speaks: bool) -> None:
    values = dict(variables)
    for name in (name for name in values if name not in VARIABLES):
        from difflib import get_close_matches  # imported here, because most jobs have no unknown name

        meant = get_close_matches(name, VARIABLES, 1, ALIKE)
        if meant:
            raise SettingError(f"{name}: expecting a variable that topompi has, such as {meant[0]}")
        if speaks:
            print(f"topompi: {visible(name)}: no variable of topompi's, and left alone", file=sys.stderr, flush=True)
    for name in WORDS:
        word_of(name, values)
    map_quality(values)
    parse_limits(values.get("TOPOMPI_LIMITS", ""))
    patience(values)
    native_calls(values)


def word_of(name: str, environment: Mapping[str, str]) -> str:
    """Return the word to which a variable is set, empty if unset; SettingError if the word is not allowed."""
    word = environment.get(name, "")
    if word not in ("", *WORDS[name]):
        raise SettingError(f"{name}: expecting one of {', '.join(WORDS[name])}, got {word!r}")
    return word


def map_quality(environment: Mapping[str, str], error: type[Exception] = SettingError) -> float:
    """Return ``TOPOMPI_MAP_QUALITY``, a part of the unmapped ranks' cost; 0 if unset.

    The search for a mapping of ranks ends as soon as its cost is at most this part of the cost of the given order.

    :param environment: the environment variables.
    :param error: class of the error that is raised if the value is not a number from 0 to 1.
    """
    written = environment.get("TOPOMPI_MAP_QUALITY") or "0"
    try:
        quality = float(written)
    except ValueError:
        quality = -1.0
    if not 0 <= quality <= 1:
        raise error(f"TOPOMPI_MAP_QUALITY: expecting a part of the given order's cost, 0 to 1, got {written!r}")
    return quality


def native_calls(environment: Mapping[str, str]) -> int:
    """Return ``TOPOMPI_NATIVE_CALLS``: the number of a communicator's first small calls that the MPI library runs.

    It is 0 with ``TOPOMPI_REPRODUCIBLE``, because other calls may follow by another algorithm.

    :param environment: the environment variables.
    :raises SettingError: if the value is not a whole number below 10**9.
    """
    written = environment.get("TOPOMPI_NATIVE_CALLS") or str(NATIVE_CALLS)
    if not (written.isascii() and written.isdigit() and len(written) < 10):
        raise SettingError(f"TOPOMPI_NATIVE_CALLS: expecting a whole number below 10**9, got {written!r}")
    return 0 if reproducible(environment) else int(written)


def reproducible(environment: Mapping[str, str]) -> bool:
    """Whether ``TOPOMPI_REPRODUCIBLE`` is set: then no algorithm changes within a job or from job to job.

    :param environment: the environment variables.
    :raises SettingError: if the value is neither 0 nor 1.
    """
    return word_of("TOPOMPI_REPRODUCIBLE", environment) == "1"


def tuning(environment: Mapping[str, str]) -> str:
    """Return ``TOPOMPI_TUNE``; ``off`` with ``TOPOMPI_REPRODUCIBLE``, because trials change algorithms.

    :param environment: the environment variables.
    :raises SettingError: if one of the two words is not allowed.
    """
    word = word_of("TOPOMPI_TUNE", environment)
    return "off" if reproducible(environment) else word


def patience(environment: Mapping[str, str]) -> int:
    """Return ``TOPOMPI_CHECK``: seconds after which the watchdog reports the call in which a rank waits.

    The result is 0 if there is no watchdog.

    :param environment: the environment variables.
    :raises SettingError: if the value is not a whole number from 0 to ``LONGEST_PATIENCE``.
    """
    written = environment.get("TOPOMPI_CHECK") or "0"
    number = int(written) if written.isascii() and written.isdigit() and len(written) < 10 else -1
    if not 0 <= number <= LONGEST_PATIENCE:
        raise SettingError(f"TOPOMPI_CHECK: expecting 0, 1, or seconds up to {LONGEST_PATIENCE}, got {written!r}")
    return PATIENCE if number == 1 else number
