"""Rows of ``sacct``'s text: field names with their values, whatever separates them, and whether names are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from ...inputs import InputFile
from ...inputs.slurm.accounting import job_number, moment, span
from ..errors import WorkloadError
from .text import lines

__all__ = ["Row", "is_sacct", "rows_of_text"]

Row = tuple[str, dict[str, str] | WorkloadError]  # place, and the values by field, or the fault of a wrong line

MARKS = "|,;\t^"
LONG_TEXTS = ("SubmitLine", "Comment", "AdminComment", "SystemComment", "WorkDir")  # may have line breaks
FREE_TEXTS = (*LONG_TEXTS, "Reason", "JobName")  # may have separators
_JOB_WORDS = ("JobID", "JobIDRaw")
_BARE = re.compile(r"[0-9]+(?:[_+][0-9]+|_\[[^]]*\])?(?:\.[a-z0-9]+)?([|,;\t^]).*[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_DASHES = re.compile(r"-+(?:\s+-+)*\s*")


def is_sacct(first: str) -> bool:
    """Return whether the first line of a log is sacct's: names of its fields, or a job's values with a separator."""
    return "|" in first or bool(set(re.split(r"[|,;\t^\s]", first)) & set(_JOB_WORDS)) or bool(_BARE.match(first))


def rows_of_text(
    log: InputFile, columns: Sequence[str] | None, notes: list[str]
) -> tuple[str, list[str], Iterator[Row]]:
    """Return the place of a log's first line, the names of its fields, and its rows.

    :param log: the output of sacct.
    :param columns: names of the fields, in order, if the log's first line does not have them; else None.
    :param notes: list that receives a line about names that are guessed, because neither has them.
    :raises WorkloadError: if the names are neither there nor given, and cannot be guessed.
    """
    numbered = ((number, line) for number, line in lines(log) if line.strip())
    first = next(numbered)
    where = f"{log.name}: line {first[0]}"
    mark = next((mark for mark in MARKS if mark in first[1]), "|" if columns else "")
    named = not first[1].strip()[:1].isdigit()
    names = [word.strip() for word in (first[1].split(mark) if mark else first[1].split())]
    if columns:
        names = list(columns)
    elif not named:
        names = _guessed(where, names, notes)
    if named and not mark:
        return where, names, _rows_of_width(log, names, numbered)
    return where, names, _rows_of_marks(log, mark, names, numbered if named else chain([first], numbered))


def _guessed(where: str, words: list[str], notes: list[str]) -> list[str]:
    """Guess the names of nameless fields from the first line, if there is only one way to do it.

    There are a job's number, a time or the three of submit, start and end, a duration, and one other whole number.
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
    """Return the rows; a line that begins no job belongs to the one before it if there is a field of long text."""
    free = next((names.index(word) for word in FREE_TEXTS if word in names), None)
    at_job = next((names.index(word) for word in _JOB_WORDS if word in names), 0)

    def begins(line: str) -> bool:
        words = line.split(mark)
        return len(words) > at_job and job_number(words[at_job].strip().partition(".")[0]) is not None

    joined = _joined(numbered, begins) if set(LONG_TEXTS) & set(names) else numbered
    return _split(log, mark, names, free, joined)


def _joined(numbered: Iterator[tuple[int, str]], begins: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Join a line with the following lines that do not begin a job."""
    held: list[str] = []
    first = 0
    for number, line in numbered:
        if not held or begins(line):
            if held:
                yield first, " ".join(held)
            first, held = number, []
        held.append(line)
    if held:
        yield first, " ".join(held)


def _split(
    log: InputFile, mark: str, names: list[str], free: int | None, numbered: Iterator[tuple[int, str]]
) -> Iterator[Row]:
    for number, line in numbered:
        where, words = f"{log.name}: line {number}", [word.strip() for word in line.split(mark)]
        surplus = len(words) - len(names)
        if surplus > 0 and free is not None:
            words[free : free + surplus + 1] = [mark.join(words[free : free + surplus + 1])]
        elif surplus == 1 and not words[-1]:  # sacct --parsable ends each line with a separator
            words.pop()
        if len(words) != len(names):
            yield where, WorkloadError(f"{where}: expecting {len(names)} fields, got {len(words)}")
        else:
            yield where, dict(zip(names, words, strict=True))


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
