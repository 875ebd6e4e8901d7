"""The variables of the environment that topompi reads, and whether they are as wanted."""

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
    "NATIVE_CALLS",
    "SOCKET",
    "VARIABLES",
    "WORDS",
    "cache_directory",
    "check_settings",
    "map_quality",
    "native_calls",
    "patience",
    "word_of",
]

PATIENCE = 30  # seconds in a call, where ``TOPOMPI_CHECK`` is 1
LONGEST_PATIENCE = 10**6  # seconds
SOCKET = "/run/topompi/topology.sock"  # where a service of topology on this host listens, by custom
NATIVE_CALLS = 8  # a plan takes as long to make as some 10 small calls take
WORDS = {
    "TOPOMPI_TUNE": ("measure", "again", "off"),
    "TOPOMPI_FALLBACK": ("error", "print", "silent"),
    "TOPOMPI_PROFILE_GRANULARITY": ("process", "host"),
    "TOPOMPI_PROFILE_COMMAND": ("masked", "whole"),
}
VARIABLES = {
    *WORDS,
    "TOPOMPI_CHECK",
    "TOPOMPI_EMULATE_STATE",
    "TOPOMPI_HOSTS",
    "TOPOMPI_MAP",
    "TOPOMPI_MAP_QUALITY",
    "TOPOMPI_NATIVE_CALLS",
    "TOPOMPI_PROFILE",
    "TOPOMPI_RULES",
    "TOPOMPI_LIMITS",
    "TOPOMPI_SERVER",
    "TOPOMPI_SHARED_DATA",
    "TOPOMPI_TOPOLOGY",
    "TOPOMPI_VERBOSE",
}
ALIKE = 0.85  # of a name and one of ours, by difflib's measure: then it is taken for a slip of the pen


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/topompi``, else ``~/.cache/topompi``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "topompi"


def check_settings(environment: Mapping[str, str], *, speaks: bool = True) -> None:
    """Refuse variables that are not as wanted; what was sound is not looked at again.

    :param environment: where they stand.
    :param speaks: whether to name, on standard error, variables that look like ours and are not.
    :raises TopompiError: for a value that is not as wanted, or a name that is nearly one of ours.
    """
    _check(tuple(sorted(item for item in environment.items() if item[0].startswith("TOPOMPI_"))), speaks)


@lru_cache(maxsize=8)
def _check(variables: tuple[tuple[str, str], ...], speaks: bool) -> None:
    values = dict(variables)
    for name in (name for name in values if name not in VARIABLES):
        from difflib import get_close_matches  # most jobs have no such name

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
    """What a variable of few words says, empty where it is not set; SettingError for a word that is none of them."""
    word = environment.get(name, "")
    if word not in ("", *WORDS[name]):
        raise SettingError(f"{name}: expecting one of {', '.join(WORDS[name])}, got {word!r}")
    return word


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


def native_calls(environment: Mapping[str, str]) -> int:
    """How many first calls of a new communicator the MPI library runs: ``TOPOMPI_NATIVE_CALLS``.

    :param environment: where it stands.
    :raises SettingError: for what is no whole number below 10**9.
    """
    written = environment.get("TOPOMPI_NATIVE_CALLS") or str(NATIVE_CALLS)
    if not (written.isascii() and written.isdigit() and len(written) < 10):
        raise SettingError(f"TOPOMPI_NATIVE_CALLS: expecting a whole number below 10**9, got {written!r}")
    return int(written)


def patience(environment: Mapping[str, str]) -> int:
    """The seconds of ``TOPOMPI_CHECK`` after which the watchdog says in which call a rank waits; 0 for no checks.

    :param environment: where it stands.
    :raises SettingError: for what is no whole number from 0 to ``LONGEST_PATIENCE``.
    """
    written = environment.get("TOPOMPI_CHECK") or "0"
    number = int(written) if written.isascii() and written.isdigit() and len(written) < 10 else -1
    if not 0 <= number <= LONGEST_PATIENCE:
        raise SettingError(f"TOPOMPI_CHECK: expecting 0, 1, or seconds up to {LONGEST_PATIENCE}, got {written!r}")
    return PATIENCE if number == 1 else number
