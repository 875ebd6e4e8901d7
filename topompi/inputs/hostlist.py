"""Host lists in Slurm's notation, ``tux[0-3,12],rack[1,4-5]-u[42-46]``, and names of hosts as jobs spell them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import NoReturn

from ..errors import SourceError
from .batchhosts import batch_hosts
from .limits import current_limits

__all__ = ["ALL", "HostNames", "compress", "expand", "read_hosts"]

ALL = "all"  # the word that users write in place of a host list for all hosts of a topology source
MAX_LENGTH = 255  # characters of a host name: POSIX's HOST_NAME_MAX, RFC 1123
MAX_DIGITS = 18  # digits of a number in a range, so that it stays within 64 bits

_TEXT = re.compile(r"[^\[\],\s]+")
_BLANK = re.compile(r"\s*")
_NUMBER = re.compile(r"([0-9]+)(?:-([0-9]+))?")
# Hosts with a number of ranks, as launchers' host files have them: n[0-3]*2, n0:2, n0(x2).
_COUNTED = re.compile(
    r"([^\s,:*(\[=]+(?:\[[0-9,-]+\][^\s,:*(\[=]*)*)(?:[*:]([0-9]{1,9})|\(x([0-9]{1,9})\))?\s*(?:,\s*|$)"
)
_LAST_NUMBER = re.compile(rf"(.*?)(?<![0-9])([0-9]{{1,{MAX_DIGITS}}})([^0-9]*)")
_NUMBER_IN_LABEL = re.compile(r".*?(?<![0-9])([0-9]+)[^0-9]*")


def expand(expression: str) -> list[str]:
    """Expand a host-list expression into the host names that it stands for, in its order, with repetitions.

    All numbers of a range get the zero padding of its first number. If a name has several brackets, the left one varies
    slowest. Blanks may surround names and commas. An expression without names gives no host.

    :param expression: the expression, for example ``"n[001-016],n[019-020]"``.
    :raises SourceError: if the expression is malformed, with the position (from 0); if there are more names than the
        limit ``hosts`` allows, or a name has more than 255 characters.

    Cost: linear in the number of names.
    """
    hosts: list[str] = []
    most = current_limits().hosts
    position = _skip_blanks(expression, 0)
    while position < len(expression):
        parts, position = _parse_name(expression, position, most - len(hosts))
        hosts.extend(map("".join, product(*parts)))
        position = _skip_blanks(expression, position)
        if position < len(expression):
            if expression[position] != ",":
                _fail(expression, "','", position)
            position = _skip_blanks(expression, position + 1)
            if position == len(expression):
                _fail(expression, "a host name", position)
    return hosts


def _parse_name(text: str, position: int, allowed: int) -> tuple[list[list[str]], int]:
    """Parse one name of texts and brackets; return the words that each of these stands for, and the next position."""
    parts: list[list[str]] = []
    count = 1
    while position < len(text):
        if text[position] == "[":
            end = text.find("]", position)
            if end < 0:
                _fail(text, "']'", len(text))
            parts.append(_parse_bracket(text, position + 1, end, allowed // count))
            position = end + 1
        elif match := _TEXT.match(text, position):
            parts.append([match[0]])
            position = match.end()
        else:
            break
        count *= len(parts[-1])
    if not parts:
        _fail(text, "a host name", position)
    if sum(max(map(len, part)) for part in parts) > MAX_LENGTH:
        _fail(text, f"names of at most {MAX_LENGTH} characters", position)
    if count > allowed:
        _too_many(text)
    return parts, position


def _parse_bracket(text: str, start: int, end: int, allowed: int) -> list[str]:
    numbers: list[str] = []
    for entry in text[start:end].split(","):
        match = _NUMBER.fullmatch(entry)
        if not match or max(map(len, match.groups(""))) > MAX_DIGITS:
            _fail(text, f"a number or a range of at most {MAX_DIGITS} digits", start)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            _fail(text, "a range that ascends", start)
        if len(numbers) + last - first + 1 > allowed:
            _too_many(text)
        numbers += (f"{number:0{len(match[1])}d}" for number in range(first, last + 1))
        start += len(entry) + 1
    return numbers


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _fail(text: str, wanted: str, position: int) -> NoReturn:
    raise SourceError(f"host list {_shorten(text)}: expecting {wanted} at position {position}")


def _too_many(text: str) -> NoReturn:
    most = f"{current_limits().hosts:,}"
    raise SourceError(
        f"host list {_shorten(text)}: expecting at most {most} names, got more; raise this with --limit hosts=NUMBER"
    )


def compress(hosts: Sequence[str]) -> str:
    """Write hosts as a short host-list expression that expands to them in the same order.

    Consecutive hosts that differ only in their last number share a bracket; a range joins numbers that ascend by one
    and have the same zero padding.

    :raises SourceError: if a name cannot be part of an expression, because it is empty or has a bracket, comma or
        blank.
    """
    return ",".join(_write_groups(hosts))


def _write_groups(hosts: Sequence[str]) -> Iterator[str]:
    frame: tuple[str, str] = ("", "")
    numbers: list[str] = []
    for host in hosts:
        before, number, after = _split(host)
        if numbers and (frame != (before, after) or not number or not numbers[-1]):
            yield _write_group(frame, numbers)
            numbers = []
        frame = (before, after)
        numbers.append(number)
    if numbers:
        yield _write_group(frame, numbers)


def _split(host: str) -> tuple[str, str, str]:
    if not _TEXT.fullmatch(host):
        raise SourceError(f"host list: expecting a name without brackets, commas and blanks, got {host!r}")
    match = _LAST_NUMBER.fullmatch(host)
    return (match[1], match[2], match[3]) if match else (host, "", "")


def _write_group(frame: tuple[str, str], numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return frame[0] + numbers[0] + frame[1]
    return f"{frame[0]}[{','.join(_write_ranges(numbers))}]{frame[1]}"


def _write_ranges(numbers: Sequence[str]) -> Iterator[str]:
    first = last = numbers[0]
    for number in [*numbers[1:], ""]:
        if number and _follows(last, number):
            last = number
            continue
        yield first if first == last else f"{first}-{last}"
        first = last = number


def _follows(last: str, number: str) -> bool:
    same_padding = len(number) == len(last) or (last[0] != "0" and number[0] != "0")
    return same_padding and int(number) == int(last) + 1


def _counted(text: str) -> list[str] | None:
    """Expand an expression with numbers of ranks (``n0:2``) into one host per rank; None if it has no such numbers."""
    text, parts, at = text.strip(), list[tuple[str, int | None]](), 0
    while at < len(text) and (match := _COUNTED.match(text, at)):
        count = next((int(one) for one in match.groups()[1:] if one), None)
        parts.append((match[1], count))
        at = match.end()
    if at < len(text) or all(count is None for _, count in parts):
        return None
    found: list[str] = []
    for names, count in parts:
        hosts, each = expand(names), 1 if count is None else count
        current_limits().check("ranks", len(found) + len(hosts) * each, text[:40], SourceError)
        found += [host for host in hosts for _ in range(each)]
    return found


def _hosts_in(text: str) -> list[str]:
    """Return the hosts that a text names in the notation of PBS, of LSF, of a launcher's host file, or of Slurm."""
    return batch_hosts(text) or _counted(text) or expand(text.rstrip(" \t,"))


def read_hosts(argument: str) -> list[str]:
    """Return the hosts that a user's ``--hosts`` or ``TOPOMPI_HOSTS`` names, one per rank, with repetitions.

    :param argument: a host-list expression, which may have numbers of ranks (``n[0-3]*2``, ``n0:2``), the hosts of a
        job of PBS or LSF (see `batch_hosts`), or the path of a file (packed or not) with one host or expression per
        line and ``#`` comments; another argument with a slash is always a path.
    :raises SourceError: if the file is absent, there is no host, or an expression is malformed (with file and line).
    """
    if os.path.exists(argument) and not os.path.isdir(argument):
        hosts = list(_read_file(argument))
    elif of_batch := batch_hosts(argument):
        hosts = of_batch
    elif "/" in argument:
        got = "a directory" if os.path.isdir(argument) else "none"
        raise SourceError(f"{argument}: expecting a file of hosts, got {got}")
    else:
        hosts = _counted(argument) or expand(argument)
    if not hosts:
        raise SourceError(f"{argument or 'host list'}: expecting at least one host, got none")
    return hosts


def _read_file(path: str) -> Iterator[str]:
    from .files import open_inputs  # imported here, because only one of a job's ranks reads files

    names = 0
    for text in open_inputs(path, SourceError, "a list of hosts"):
        text.refuse_foreign()
        text.head()  # raises for empty and binary files
        for number, line in text.lines():
            try:
                content = line.partition("#")[0]
                hosts = _hosts_in(content)
            except SourceError as error:
                raise SourceError(f"{text.name}:{number}: {error}") from error
            names += len(hosts)
            current_limits().check("ranks", names, f"{text.name}:{number}", SourceError)
            yield from hosts


class HostNames:
    """The host names of a machine, with a search that also finds names that a job spells differently.

    Four rules are tried in this order, until one finds a host. (1) The names are equal. (2) Their first labels (up to a
    dot) are equal, and only one host has this label. (3) The labels differ only in case, and only one host has this
    label in any case. (4) If all hosts of the machine are bare numbers, as in node maps, a name is compared by the last
    number of its first label, zeros included: ``lrdn0059`` and ``lrdn0059.site`` match ``0059``, because the map omits
    the prefix.

    :param hosts: the machine's host names, each once.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = hosts

    def find(self, name: str) -> int:
        """Find a host by a name as a job spells it; return its position in ``hosts``, -1 if no rule finds it."""
        number = self.index.get(name, -1)
        if number < 0:
            number = self._by_label.get(_first_label(name), -1)
        return number if number >= 0 else self._in_any_case.get(_first_label(name).casefold(), self._by_number(name))

    @cached_property
    def index(self) -> dict[str, int]:
        """Host name -> its position in ``hosts``."""
        return {name: number for number, name in enumerate(self.hosts)}

    @cached_property
    def _by_label(self) -> dict[str, int]:
        return _once(map(_first_label, self.hosts))

    @cached_property
    def _in_any_case(self) -> dict[str, int]:
        return _once(_first_label(host).casefold() for host in self.hosts)

    @cached_property
    def _are_numbers(self) -> bool:
        return all(host.isdecimal() for host in self.hosts)

    def _by_number(self, name: str) -> int:
        match = _NUMBER_IN_LABEL.fullmatch(_first_label(name)) if self._are_numbers else None
        return self.index.get(match[1], -1) if match else -1


def _once(names: Iterable[str]) -> dict[str, int]:
    """Return the position of each name that appears only once."""
    every = list(names)
    count = Counter(every)
    return {name: at for at, name in enumerate(every) if count[name] == 1}


def _first_label(name: str) -> str:
    return name.partition(".")[0]
