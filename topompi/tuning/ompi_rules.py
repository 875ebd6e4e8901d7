"""Rules for Open MPI's ``tuned`` component, from tuning runs in which Open MPI was forced to use single algorithms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ..execution.specs import NATIVE
from ..selection.judging import CLEAR
from .record import RecordError, TuneRecord

__all__ = ["write_ompi_rules"]

# For each method the collective's number in the file, and True if a size in the file counts all ranks' blocks together,
# False if it is the vector's or message's size. Source: Open MPI 5.0, ompi/mca/coll/base/coll_base_functions.h and
# coll/tuned/coll_tuned_decision_dynamic.c.
NUMBERS = {
    "Allgather": (0, True),
    "Allreduce": (2, False),
    "Alltoall": (3, True),
    "Bcast": (7, False),
    "Gather": (9, True),
    "Reduce": (11, False),
    "Reduce_scatter": (12, False),
    "Reduce_scatter_block": (13, False),
    "Scatter": (15, True),
}
FIXED = 0  # number for the library's own choice

Samples = Mapping[int, np.ndarray]  # times in seconds by number of the algorithm


def write_ompi_rules(records: Sequence[TuneRecord]) -> str:
    """The text of a file for ``coll_tuned_dynamic_rules_filename``.

    The records are of tuning runs under Open MPI on the same machines: a run in which no algorithm was forced, and runs
    with an algorithm forced by ``coll_tuned_METHOD_algorithm``. A size gets the forced algorithm with the lowest median
    time if the library's own choice takes at least 5 % longer, and the middle halves of the two samples do not overlap.
    For all other sizes, for other numbers of ranks, and from twice the largest measured size on, the library chooses.

    :param records: the records of the runs.
    :raises RecordError: if records are of different machines or of another library, or if no record is of a run without
        a forced algorithm.
    """
    _check_same_job(records)
    sections = [
        (number, method, lines)
        for method, (number, _) in NUMBERS.items()
        if (lines := _of_method(method, records)) is not None
    ]
    if not sections:
        raise RecordError("expecting records in which some method has its algorithm forced, got none")
    body = [line for number, method, lines in sections for line in (f"{number} # {method}", *lines)]
    head = [
        "rule-file-version-2",
        f"# {records[0].library}, {records[0].description}",
        "# measured in runs made apart, one for each algorithm",
        f"{len(sections)} # collectives",
    ]
    return "\n".join([*head, *body, ""])


def _check_same_job(records: Sequence[TuneRecord]) -> None:
    if not records:
        raise RecordError("expecting records, got none")
    first = records[0]
    for record in records:
        if not record.library.startswith("Open MPI"):
            raise RecordError(f"{record.name}: expecting a record of Open MPI, got one of {record.library}")
        for field in ("library", "nodes"):
            if getattr(record, field) != getattr(first, field) and (field == "library" or record.ranks == first.ranks):
                raise RecordError(f"{record.name} and {first.name}: expecting the same {field}, they differ")


def _of_method(method: str, records: Sequence[TuneRecord]) -> list[str] | None:
    """The file's lines for a method: rules for each measured number of ranks; for all others the library chooses."""
    rules = {
        ranks: found
        for ranks in sorted({record.ranks for record in records})
        if (found := _rules(method, [record for record in records if record.ranks == ranks]))
    }
    if not rules:
        return None
    sections: dict[int, list[tuple[int, int]]] = {1: [(0, FIXED)]}
    for ranks, found in rules.items():
        sections[ranks] = found
        sections.setdefault(ranks + 1, [(0, FIXED)])
    lines = [f"{len(sections)} # numbers of ranks, each up to the next"]
    for ranks, found in sorted(sections.items()):
        lines += [f"{ranks} # ranks", f"{len(found)} # sizes in bytes, each up to the next"]
        lines += [f"{size} {algorithm} 0 0 0" for size, algorithm in found]
    return lines


def _rules(method: str, records: Sequence[TuneRecord]) -> list[tuple[int, int]]:
    """Pairs of least size and algorithm in Open MPI's numbering, ascending from 0; empty if no algorithm was forced."""
    times: dict[int, dict[int, np.ndarray]] = defaultdict(dict)
    for record in records:
        algorithm = forced_number(method, record)
        for nbytes, samples in record.times(method, NATIVE).items():
            times[nbytes][algorithm] = samples
    if not any(set(samples) - {FIXED} for samples in times.values()):
        return []
    if not all(FIXED in samples for samples in times.values()):
        names = ", ".join(record.name for record in records)
        raise RecordError(f"{names}: expecting all sizes of {method} in a record in which nothing is forced too")
    ranks = records[0].ranks if NUMBERS[method][1] else 1
    found = [(0, FIXED)]
    for nbytes, of_size in sorted(times.items()):
        found.append((nbytes * ranks, _fastest(of_size)))
    found.append((2 * found[-1][0], FIXED))
    return [rule for rule, before in zip(found, [(0, -1), *found], strict=False) if rule[1] != before[1]]


def forced_number(method: str, record: TuneRecord) -> int:
    """Open MPI's number of the algorithm that was forced for a method in a record's run; 0 if none was forced."""
    word = record.forced.get(method.lower(), "0")
    if not word.isdigit():
        raise RecordError(
            f"{record.name}: expecting a number as coll_tuned_{method.lower()}_algorithm, as Open MPI's file wants it, "
            f"got {word!r}"
        )
    return int(word)


def _fastest(samples: Samples) -> int:
    """The algorithm with the lowest median, if it is clearly faster than the library's own choice; else 0."""
    best = min(samples, key=lambda algorithm: (float(np.median(samples[algorithm])), algorithm))
    own, other = samples[FIXED], samples[best]
    clear = np.median(own) >= CLEAR * np.median(other) and np.quantile(other, 0.75) < np.quantile(own, 0.25)
    return best if clear else FIXED
