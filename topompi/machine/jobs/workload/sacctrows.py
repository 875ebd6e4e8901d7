"""Rows of ``sacct``'s text: values by field name, from text with any separator, with or without a line of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations_with_replacement, islice

from ....inputs import InputFile
from ....inputs.csvtext import csv_fields
from ....inputs.slurm.accounting import count_of, is_unknown, job_number, moment, span
from ..errors import WorkloadError
from .text import lines

__all__ = ["Row", "is_sacct", "rows_of_text"]

Row = tuple[str, dict[str, str] | WorkloadError]  # file and line, and the values by field or an error

MARKS = "|,;\t^"
LONG_TEXTS = ("SubmitLine", "Comment", "AdminComment", "SystemComment", "WorkDir")  # may have line breaks
FREE_TEXTS = (*LONG_TEXTS, "Reason", "JobName")  # may have separators
MOST_TRIED = 200  # greatest number of ways in which a line's surplus separators are given to fields of free text
_JOB_WORDS = ("JobID", "JobIDRaw")
_TIMES, _SPANS, _COUNTS = ("Submit", "Start", "End", "Eligible"), ("Elapsed", "Timelimit"), ("NNodes", "AllocNodes")
# The names that matter, as sacct writes them: sacct takes them in any case, and programs print them as they like.
_NAMES = {
    word.lower(): word
    for word in (
        *(*FREE_TEXTS, *_JOB_WORDS, *_TIMES, *_SPANS, *_COUNTS, "ReqNodes", "ElapsedRaw", "TimelimitRaw", "State"),
        *("User", "Account", "Partition", "QOS", "Cluster", "AllocTRES", "ReqTRES", "AllocCPUS", "NodeList"),
    )
}
_TRES = re.compile(r"[a-z]+(?:/[\w:-]+)?=\S+")
_BARE = re.compile(r"[0-9]+(?:[_+][0-9]+|_\[[^]]*\])?(?:\.[a-z0-9]+)?([|,;\t^]).*[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_DASHES = re.compile(r"-+(?:\s+-+)*\s*")


def is_sacct(first: str) -> bool:
    """Return whether the first line of a log is sacct's: names of its fields, or a job's values with a separator."""
    words = {word.strip("\"'").lower() for word in re.split(r"[|,;\t^\s]", first)}
    return "|" in first or bool(words & {"jobid", "jobidraw"}) or bool(_BARE.match(first))


def rows_of_text(
    log: InputFile, columns: Sequence[str] | None, notes: list[str]
) -> tuple[str, list[str], Iterator[Row]]:
    """Return file and number of a log's first line, as text, the names of its fields, and its rows.

    :param log: the output of sacct.
    :param columns: names of the fields, in order, if the log's first line does not have them; else None.
    :param notes: list that receives a line if the names are guessed, because neither the log nor ``columns`` has them.
    :raises WorkloadError: if neither the log nor ``columns`` has the names, and they cannot be guessed.
    """
    numbered = ((number, line) for number, line in lines(log) if line.strip())
    first = next(numbered)
    where = f"{log.name}: line {first[0]}"
    mark = next((mark for mark in MARKS if mark in first[1]), "|" if columns else "")
    names = [word.strip() for word in (_cut(first[1], mark, where) if mark else first[1].split())]
    named = not names[0][:1].isdigit()
    if columns:
        names = list(columns)
    elif not named:
        names = _guessed(where, names, notes)
    names = [_NAMES.get(name.lower(), name) for name in names]
    if named and not mark:
        return where, names, _rows_of_width(log, names, numbered)
    return where, names, _rows_of_marks(log, mark, names, numbered if named else chain([first], numbered))


def _guessed(where: str, words: list[str], notes: list[str]) -> list[str]:
    """Guess the names of nameless fields from the first line, if there is only one way to do it.

    The line must have a job's number first, one other whole number (of nodes), and either a time (submit) with a
    duration, or three times (submit, start and end) with or without a duration.
    """
    kinds = {"Submit": moment, "Elapsed": span, "JobID": job_number}
    found = {
        at: next((kind for kind, read in kinds.items() if read(word) is not None), "") for at, word in enumerate(words)
    }
    of = {kind: [at for at, one in found.items() if one == kind] for kind in (*kinds, "")}
    names = dict(zip(of["Submit"], ("Submit", "Start", "End"), strict=False))
    names |= dict(zip(of["JobID"], ("JobID", "NNodes"), strict=False)) | dict.fromkeys(of["Elapsed"], "Elapsed")
    alone = len(of["Submit"]) in (1, 3) and len(of["Elapsed"]) <= 1 and len(of["JobID"]) == 2 and of["JobID"][0] == 0
    if not alone or (len(of["Submit"]) == 1 and not of["Elapsed"]):
        wanted = "a first line with the names of the fields, or --columns JobID,Submit,..."
        raise WorkloadError(f"{where}: expecting {wanted}, got {'|'.join(words)[:60]!r}")
    guess = [names.get(at, f"field{at + 1}") for at in range(len(words))]
    notes.append(f"no names of fields: taken as {','.join(guess)} (--columns settles it)")
    return guess


def _rows_of_marks(log: InputFile, mark: str, names: list[str], numbered: Iterator[tuple[int, str]]) -> Iterator[Row]:
    """Return the rows of a log whose fields are separated by a character.

    If there are fields of free text, which may contain line breaks, a line that begins no job is joined to the line
    before it: always if a field of long text is among them, else only if that line has too few fields.
    """
    free = [names.index(word) for word in FREE_TEXTS if word in names]
    at_job = next((names.index(word) for word in _JOB_WORDS if word in names), 0)
    is_long = bool(set(LONG_TEXTS) & set(names))
    sure = min((at for at in free if at > at_job), default=len(names))  # fields that a line has before any free text

    def belongs(line: str, held: list[str]) -> bool:
        words = line.split(mark)
        job = len(words) > at_job and job_number(words[at_job].strip().partition(".")[0]) is not None
        if job and (len(words) == len(names) or (len(words) >= sure and _fits(names[:sure], words[:sure]))):
            return False
        return is_long or len(_cut(" ".join(held), mark, log.name)) < len(names)

    return _split(log, mark, names, free, _joined(numbered, belongs) if free else numbered)


def _joined(
    numbered: Iterator[tuple[int, str]], belongs: Callable[[str, list[str]], bool]
) -> Iterator[tuple[int, str]]:
    """Join a line with the following lines that belong to it."""
    held: list[str] = []
    first = 0
    for number, line in numbered:
        if not held or not belongs(line, held):
            if held:
                yield first, " ".join(held)
            first, held = number, []
        held.append(line)
    if held:
        yield first, " ".join(held)


def _split(
    log: InputFile, mark: str, names: list[str], free: list[int], numbered: Iterator[tuple[int, str]]
) -> Iterator[Row]:
    for number, line in numbered:
        where = f"{log.name}: line {number}"
        words = [word.strip() for word in _cut(line, mark, where)]
        if len(words) > len(names) and mark == ",":
            words = _glued(words, names)
        if len(words) == len(names) + 1 and not words[-1]:  # sacct --parsable ends each line with a separator
            words.pop()
        if len(words) > len(names) and free:
            words = _divided(words, mark, names, free)
        if len(words) != len(names):
            yield (
                where,
                WorkloadError(f"{where}: expecting {len(names)} fields with {mark!r} between them, got {len(words)}"),
            )
        else:
            yield where, dict(zip(names, words, strict=True))


def _cut(line: str, mark: str, where: str) -> list[str]:
    """Split a line at a separator; commas within quotes are text."""
    return csv_fields(line, where, WorkloadError) if mark == "," and '"' in line else line.split(mark)


def _glued(words: list[str], names: list[str]) -> list[str]:
    """Join words that belong to one value with commas: a list of nodes, a list of tasks in brackets, or a TRES."""
    found: list[str] = []
    for word in words:
        before, name = found[-1] if found else "", names[min(len(found), len(names)) - 1]
        is_open = before.count("[") > before.count("]") or (name == "NodeList" and _is_host(word))
        if found and (is_open or ("TRES" in name and _TRES.fullmatch(word) and "=" in before)):
            found[-1] += f",{word}"
        else:
            found.append(word)
    return found


def _is_host(word: str) -> bool:
    return bool(re.fullmatch(r"[a-z][a-z.-]*(?:[0-9]|\[[0-9]).*", word))


def _divided(words: list[str], mark: str, names: list[str], free: list[int]) -> list[str]:
    """Give surplus separators to the fields of free text, so that times, durations and counts are in their fields."""
    surplus, first = len(words) - len(names), list[str]()
    for chosen in islice(combinations_with_replacement(free, surplus), MOST_TRIED):
        found, at = list[str](), 0
        for field in range(len(names)):
            width = 1 + chosen.count(field)
            found.append(mark.join(words[at : at + width]))
            at += width
        if _fits(names, found):
            return found
        first = first or found
    return first


def _fits(names: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether each field of a time, duration or count contains one, another number, or a word for unknown."""
    for name, word in zip(names, (word.strip() for word in words), strict=False):
        read = moment if name in _TIMES else span if name in _SPANS else _count if name in _COUNTS else None
        if read is not None and not is_unknown(word) and read(word) is None and not word.isdecimal():
            return False
    return True


def _count(word: str) -> int | None:
    found = count_of(word)
    return int(found) if found.isdecimal() and len(found) < 20 else None


def _rows_of_width(log: InputFile, names: list[str], numbered: Iterator[tuple[int, str]]) -> Iterator[Row]:
    """Yield the rows of sacct's table without -P, whose columns are as wide as the dashes below their names."""
    number, dashes = next(numbered, (1, ""))
    spans = [match.span() for match in re.finditer(r"-+", dashes)]
    if not _DASHES.fullmatch(dashes) or len(spans) != len(names):
        raise WorkloadError(
            f"{log.name}: line {number}: expecting dashes below {len(names)} names, got {dashes[:60]!r}"
        )
    for number, line in numbered:
        yield (
            f"{log.name}: line {number}",
            {name: line[slice(*of)].strip() for name, of in zip(names, spans, strict=True)},
        )
