"""Hosts of a job as PBS (``exec_host``, ``exec_vnode``) and LSF (``LSB_MCPU_HOSTS``, ``LSB_HOSTS``) write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import SourceError
from .limits import current_limits

__all__ = ["batch_hosts"]

_NAME = r"[A-Za-z][\w.-]{0,254}"
_VARIABLE = re.compile(r"\s*(?:export\s+)?(?:exec_host|exec_vnode|LSB_HOSTS|LSB_MCPU_HOSTS)\s*=\s*", re.IGNORECASE)
_SLOT = re.compile(rf"(?P<host>{_NAME})/\d{{1,6}}(?:\*(?P<count>\d{{1,6}}))?")
_VNODE = re.compile(rf"\(?(?P<host>{_NAME})(?P<resources>(?::\w+=[\w.]+)+)\)?")
_NAMES = re.compile(_NAME)


def batch_hosts(text: str) -> list[str] | None:
    """Return one host name per slot of a job; None if the text is not a host list of PBS or LSF.

    The number of slots of a virtual node of PBS is ``mpiprocs``, else ``ncpus``, else one.

    :param text: value of one of these variables of PBS or LSF, or a line ``NAME=value`` with its name.
    :raises SourceError: if there are more slots than the limit ``ranks`` allows.
    """
    text = text.strip()
    named = _VARIABLE.match(text)
    rest = text[named.end() :].strip("\"'") if named else text
    found = list(_counted(rest, named is not None))
    current_limits().check("ranks", sum(count for _, count in found), text[:40], SourceError)
    return [host for host, count in found for _ in range(count)] or None


def _counted(text: str, named: bool) -> Iterator[tuple[str, int]]:
    """Yield each host and its number of slots; nothing if the text is not a host list of PBS or LSF.

    :param text: value of a variable of PBS or LSF.
    :param named: whether the name of the variable is known; only then are words separated by blanks, without numbers,
        taken for hosts (``LSB_HOSTS``).
    """
    words = text.split()
    if (
        len(words) % 2 == 0
        and all(word.isdecimal() and len(word) < 7 for word in words[1::2])
        and _are_names(words[::2])
    ):
        yield from zip(words[::2], map(int, words[1::2]), strict=True)
    elif named and _are_names(words):
        yield from ((word, 1) for word in words)
    for pattern, count in ((_SLOT, _slots), (_VNODE, _processes)):
        matches = []
        for part in text.split("+"):
            match = pattern.fullmatch(part.strip())
            if match is None:
                break
            matches.append((match["host"], count(match)))
        else:
            yield from matches


def _are_names(words: Sequence[str]) -> bool:
    return bool(words) and all(_NAMES.fullmatch(word) for word in words)


def _slots(match: re.Match[str]) -> int:
    return int(match["count"] or 1)


def _processes(match: re.Match[str]) -> int:
    resources = dict(pair.split("=", 1) for pair in match["resources"][1:].split(":"))
    count = resources.get("mpiprocs", resources.get("ncpus", "1"))
    return int(count) if count.isascii() and count.isdecimal() and len(count) < 7 else 1
