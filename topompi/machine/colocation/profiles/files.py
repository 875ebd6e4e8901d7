"""Files of profiles and of systems: JSON, a program per line."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ....inputs.files import read_text
from ....inputs.jsontext import parse_json
from ....inputs.writing import write_text
from ..errors import ColocationError
from .record import METRICS, Profile
from .system import KindLimits, System

__all__ = ["PROFILES", "SYSTEM", "read_profiles", "read_system", "write_profiles", "write_system"]

PROFILES = {"format": "topompi program profiles", "version": 1}
SYSTEM = {"format": "topompi system", "version": 1}
_WORDS, _COUNTS = ("program", "kind"), ("processes", "nodes")


def read_profiles(path: str | os.PathLike[str]) -> list[Profile]:
    """Read the profiles of programs from a file that ``write_profiles`` wrote.

    :param path: the file.
    :raises ColocationError: if the file is malformed; the message names file and field.
    """
    content = _content(path, PROFILES, "profiles of programs")
    programs = content.get("programs")
    if not isinstance(programs, list) or not all(isinstance(one, dict) for one in programs):
        raise ColocationError(f"{path}: programs: expecting a list of objects, got {programs!r:.60}")
    try:
        made = [_profile(one, f"programs[{at}]") for at, one in enumerate(programs)]
    except ColocationError as error:
        raise ColocationError(f"{path}: {error}") from None
    twice = next((name for name, count in Counter(one.program for one in made).items() if count > 1), None)
    if twice is not None:
        raise ColocationError(f"{path}: programs: expecting each program once, got {twice!r} twice")
    return made


def write_profiles(path: str | os.PathLike[str], profiles: Iterable[Profile]) -> None:
    """Write profiles of programs, one per line; unknown values are left out.

    :param path: the file.
    :param profiles: the profiles.
    """
    lines = ",\n  ".join(json.dumps(known_fields(one)) for one in profiles)
    write_text(Path(path), f'{json.dumps(PROFILES)[:-1]},\n "programs": [\n  {lines}\n ]}}\n')


def known_fields(profile: Profile) -> dict[str, object]:
    """Return the known values of a profile by name, as they stand in files.

    :param profile: the profile.
    """
    every = asdict(profile).items()
    return {name: value for name, value in every if value == value and (value or name in METRICS)}


def read_system(path: str | os.PathLike[str]) -> System:
    """Read the bounds and thresholds of a machine from a file that ``write_system`` wrote.

    :param path: the file.
    :raises ColocationError: if the file is malformed; the message names file and field.
    """
    content = _content(path, SYSTEM, "bounds of a system")
    try:
        limits = content.get("thresholds", {})
        if not isinstance(limits, dict) or not vars(KindLimits()).keys() >= limits.keys():
            known = ", ".join(vars(KindLimits()))
            raise ColocationError(f"thresholds: expecting an object with {known}, got {limits!r:.80}")
        bounds = {name: _number(content, name, "bounds") for name in METRICS if name != "mpi"}
        limits = {name: _number(limits, name, "thresholds") for name in limits}
        return System(_word(content, "name", "system"), **bounds, thresholds=KindLimits(**limits))
    except ColocationError as error:
        raise ColocationError(f"{path}: {error}") from None


def write_system(path: str | os.PathLike[str], system: System) -> None:
    """Write the bounds and thresholds of a machine.

    :param path: the file.
    :param system: the machine.
    """
    bounds = {name: value for name, value in asdict(system).items() if name != "mpi"}
    write_text(Path(path), json.dumps(SYSTEM | bounds, indent=1) + "\n")


def _content(path: str | os.PathLike[str], header: dict[str, object], what: str) -> dict[str, object]:
    content = parse_json(read_text(path, ColocationError, what), str(path), ColocationError)
    if not isinstance(content, dict) or not header.items() <= content.items():
        raise ColocationError(f"{path}: expecting an object with {json.dumps(header)}, got other content")
    return content


def _profile(one: dict[str, object], where: str) -> Profile:
    strange = next((name for name in one if name not in {known.name for known in fields(Profile)}), None)
    if strange is not None:
        raise ColocationError(f"{where}: expecting fields of a profile, got {strange!r:.60}")
    made: dict[str, Any] = {"program": _word(one, "program", where)}
    for name in one:
        if name in _WORDS:
            made[name] = _word(one, name, where)
        elif name in _COUNTS:
            made[name] = _whole(one, name, where)
        elif name == "shares":
            shares = one[name]
            if not isinstance(shares, dict):
                raise ColocationError(f"{where}: shares: expecting an object, got {shares!r:.60}")
            made[name] = {call: _number(shares, call, f"{where}: shares") for call in shares}
        else:
            made[name] = _number(one, name, where)
    return Profile(**made)


def _word(one: dict[str, object], name: str, where: str) -> str:
    found = one.get(name)
    if not isinstance(found, str) or not found:
        raise ColocationError(f"{where}: {name}: expecting a name, got {found!r:.60}")
    return found


def _whole(one: dict[str, object], name: str, where: str) -> int:
    found = one[name]
    if type(found) is not int or not 0 <= found < 1 << 31:
        raise ColocationError(f"{where}: {name}: expecting a whole number from 0, got {found!r:.60}")
    return found


def _number(one: dict[str, object], name: str, where: str) -> float:
    found = one.get(name)
    if type(found) not in (int, float) or not abs(found) < math.inf:  # type: ignore[arg-type]
        raise ColocationError(f"{where}: {name}: expecting a number, got {found!r:.60}")
    return float(found)  # type: ignore[arg-type]
