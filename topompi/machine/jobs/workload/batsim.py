"""Reader of Batsim's workload files: JSON with ``nb_res``, ``jobs``, and ``profiles``, all of type delay.

Batsim 5 names the profiles' type ``DelayProfile``, as batprotocol does; earlier versions name it ``delay``. Sequences
of delays are read as their sum.
"""

from __future__ import annotations

from typing import Any

from ..errors import WorkloadError
from .columns import Value, gather
from .workload import LATEST, LeftOut, Workload

__all__ = ["batsim_of_json"]

DELAYS = ("delay", "DelayProfile")  # the profiles' type, to version 4 and since 5
SEQUENCES = ("composed", "sequential_composition", "SequentialCompositionProfile")
DEEPEST = 16  # greatest number of sequences within one another
KNOWN = ("id", "subtime", "walltime", "res", "profile", "user")


def batsim_of_json(name: str, content: Any, partial: bool = False) -> Workload:
    """Make the workload of Batsim's JSON; times are rounded to whole seconds, further fields of jobs become columns.

    :param name: name of the file.
    :param content: the JSON.
    :param partial: whether wrong jobs are skipped and counted, instead of raising an error.
    :raises WorkloadError: if the JSON is malformed; the message names file, job and field.
    """
    jobs, profiles = (_member(name, content, word, kind) for word, kind in (("jobs", list), ("profiles", dict)))
    nodes, known = content.get("nb_res"), dict[str, float]()
    return gather(
        name,
        enumerate(jobs, 1),
        lambda job: _values(f"{name}: job {job[0]}", *job, profiles, known),
        LeftOut(partial),
        (f"; MaxNodes: {nodes}",) if isinstance(nodes, int) else (),
        lambda job: _further(f"{name}: job {job[0]}", job[1], profiles),
    )


def _member(name: str, content: object, word: str, kind: type) -> Any:
    if not isinstance(content, dict) or not isinstance(content.get(word), kind):
        raise WorkloadError(f"{name}: expecting an object with {word}, got none")
    return content[word]


def _values(
    where: str, number: int, job: object, profiles: dict[str, object], known: dict[str, float]
) -> dict[str, int]:
    if not isinstance(job, dict):
        raise WorkloadError(f"{where}: expecting an object, got {type(job).__name__}")
    name = str(job.get("id", number)).rpartition("!")[2]
    request, user = job.get("walltime", 0), job.get("user")
    return {
        "number": int(name) if name.isascii() and name.isdigit() and len(name) < 15 else number,
        "submit": _seconds(f"{where}: subtime", job.get("subtime")),
        "run": round(_delay(where, job.get("profile"), profiles, known)),
        "request": 0 if request in (None, -1) else _seconds(f"{where}: walltime", request),
        "nodes": _seconds(f"{where}: res", job.get("res"), 1, 2**31),
        "user": user if type(user) is int and -1 <= user < 2**31 else -1,
    }


def _delay(where: str, name: object, profiles: dict[str, object], known: dict[str, float], depth: int = 0) -> float:
    """Return the seconds of a profile: a delay, or a sequence of delays that may be repeated.

    :param where: file and job, for error messages.
    :param name: name of the profile.
    :param profiles: the file's profiles by name.
    :param known: dictionary that keeps the seconds of profiles, because many jobs and sequences have the same one.
    :param depth: number of sequences around this one.
    :raises WorkloadError: if the profile is missing or of another type; the message names the type.
    """
    if (found := known.get(str(name))) is not None:
        return found
    profile = profiles.get(str(name))
    of = profile if isinstance(profile, dict) else {}
    listed = of.get("seq", of.get("profile_ids"))
    if of.get("type") in DELAYS:
        seconds = _number(f"{where}: delay", of.get("delay"))
    elif of.get("type") in SEQUENCES and isinstance(listed, list) and depth < DEEPEST:
        times = _number(f"{where}: repeat", of.get("repeat", of.get("repetition_count", 1)), 1, 2**31)
        total = times * sum(_delay(where, one, profiles, known, depth + 1) for one in listed)
        seconds = _number(f"{where}: sequence", total)
    else:
        got = f"{str(name)[:40]!r}" + (f" of type {str(of['type'])[:40]}" if "type" in of else "")
        raise WorkloadError(f"{where}: profile: expecting one of type delay or DelayProfile, or a sequence, got {got}")
    known[str(name)] = seconds
    return seconds


def _further(where: str, job: dict[str, Any], profiles: dict[str, Any]) -> dict[str, Value]:
    """Return a job's fields that Batsim does not define, and its profile's name unless that is its run time."""
    found: dict[str, Value] = {}
    for word, value in job.items():
        if word == "slots":
            found[word] = _seconds(f"{where}: slots", value, 0, 2**31)
        elif word == "shared" and not isinstance(value, bool):
            raise WorkloadError(f"{where}: shared: expecting true or false, got {str(value)[:40]!r}")
        elif word not in KNOWN and isinstance(value, Value) and (type(value) is not int or abs(value) < LATEST):
            found[word] = value
    if isinstance(job.get("user"), str):
        found["user_name"] = job["user"]
    profile = str(job["profile"])
    return found if profile == f"delay{profiles[profile].get('delay')}" else found | {"profile": profile}


def _seconds(where: str, value: object, least: int = 0, below: int = LATEST) -> int:
    return round(_number(where, value, least, below))


def _number(where: str, value: object, least: int = 0, below: int = LATEST) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < below:
        raise WorkloadError(f"{where}: expecting a number from {least} below {below}, got {str(value)[:40]!r}")
    return value
