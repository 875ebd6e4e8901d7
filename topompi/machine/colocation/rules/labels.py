"""Labels of pairs by the empirical rules: whether a program gains, loses or stays as it is beside another.

The rules are those of A. Tsoukleidis-Karydakis, diploma thesis, NTUA 2025, section 4.3. Its decision tree is an image
without thresholds; the tree here reproduces all 218 labels of its predicted matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from ..profiles.record import Profile
from ..profiles.system import System
from ..speedups.bands import BAD, GOOD, STATIONARY
from .kinds import Kind, kind_of

__all__ = ["Labels", "character_of", "label", "labels"]

_ALWAYS = {Kind.C_HEAVY: STATIONARY, Kind.X_IDLE: STATIONARY, Kind.X_USEFUL: GOOD}
# Label beside each kind of neighbour: the exceptions, and the label beside all other kinds.
_BESIDE = {
    Kind.C_MEM: ({Kind.M: BAD}, STATIONARY),
    Kind.C_COMM: (dict.fromkeys((Kind.M, Kind.X_USEFUL, Kind.X_IDLE), STATIONARY), GOOD),
    Kind.M_IRR: ({Kind.M: BAD, Kind.M_IRR: STATIONARY}, GOOD),
}


@dataclass(frozen=True)
class Labels:
    """The properties of a program by which the rules decide.

    :ivar program: name of the program.
    :ivar kind: kind of the program.
    :ivar memory: memory bandwidth on any scale that the compared programs share; NaN if unknown.
    """

    program: str
    kind: Kind
    memory: float = math.nan


def character_of(profile: Profile, system: System) -> Labels:
    """Return the character of a program: its kind as its profile has it or implies it, and its bandwidth.

    :param profile: the profile.
    :param system: bounds and thresholds of the machine.
    :raises ColocationError: if a deciding metric is unknown, or the profile's own kind contradicts its metrics.
    """
    tag = system.tag(profile)
    if profile.kind:
        given = _kind(profile)
        try:
            implied = kind_of(tag, system.thresholds)
        except ColocationError:  # the metrics do not decide
            implied = given
        if implied is not given:
            raise ColocationError(
                f"{profile.program}: kind: expecting {implied.value}, as its metrics imply, got {given.value}"
            )
        return Labels(profile.program, given, tag.memory)
    return Labels(profile.program, kind_of(tag, system.thresholds), tag.memory)


def _kind(profile: Profile) -> Kind:
    try:
        return Kind(profile.kind)
    except ValueError:
        known = ", ".join(one.value for one in Kind)
        raise ColocationError(f"{profile.program}: kind: expecting one of {known}, got {profile.kind!r}") from None


def label(one: Labels, beside: Labels) -> int:
    """Return the label of a program beside a neighbour, as its index in ``bands.CLASSES``.

    Of two memory-bound programs, the one that uses more bandwidth gains and the other loses.

    :param one: the program.
    :param beside: its neighbour.
    :raises ColocationError: if both are memory-bound and different, and the bandwidth of one is unknown.
    """
    if one.kind in _ALWAYS:
        return _ALWAYS[one.kind]
    if one.kind is not Kind.M:
        exceptions, otherwise = _BESIDE[one.kind]
        return exceptions.get(beside.kind, otherwise)
    if beside.kind is not Kind.M:
        return GOOD
    if one.program == beside.program:
        return STATIONARY
    for of in (one, beside):
        if math.isnan(of.memory):
            raise ColocationError(f"{of.program}: memory: expecting the bandwidth of a memory-bound program, got none")
    return STATIONARY + (one.memory > beside.memory) - (one.memory < beside.memory)


def labels(characters: Sequence[Labels]) -> NDArray[np.int8]:
    """Return the labels of all programs (rows) beside all programs (columns), shape (n, n).

    :param characters: the n programs.
    :raises ColocationError: as ``label`` raises it.
    """
    return np.array([[label(one, beside) for beside in characters] for one in characters], np.int8).reshape(
        len(characters), len(characters)
    )
