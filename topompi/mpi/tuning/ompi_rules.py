"""Rules for Open MPI's ``tuned`` component: from runs that were forced to use one algorithm, or from predictions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..execution.specs import NATIVE
from ..prediction.librarychoices import LibraryChoice
from ..selection.judging import CLEAR
from .record import RecordError, TuneRecord

__all__ = ["Rules", "of_choices", "of_records", "write_classic", "write_json"]

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

Rule = tuple[int, int, int]  # least size in bytes as the file counts it, number of the algorithm, bytes of a segment
Rules = Mapping[str, Mapping[int, Sequence[Rule]]]  # by method and number of ranks; sizes ascend from 0
Samples = Mapping[int, np.ndarray]  # times in seconds by number of the algorithm


def of_records(records: Sequence[TuneRecord]) -> Rules:
    """The rules that follow from measurements.

    The records are of tuning runs under Open MPI on the same machines: a run in which no algorithm was forced, and runs
    with an algorithm forced by ``coll_tuned_METHOD_algorithm``. A size gets the forced algorithm with the lowest median
    time if the library's own choice takes at least 5 % longer, and the middle halves of the two samples do not overlap.
    For all other sizes, and from twice the largest measured size on, the library chooses.

    :param records: the records of the runs.
    :raises RecordError: if records are of different machines or of another library, or if no record is of a run without
        a forced algorithm.
    """
    _check_same_job(records)
    rules: dict[str, dict[int, list[Rule]]] = defaultdict(dict)
    for method in NUMBERS:
        for ranks in sorted({record.ranks for record in records}):
            if found := _rules(method, [record for record in records if record.ranks == ranks]):
                rules[method][ranks] = [(size, number, 0) for size, number in found]
    if not rules:
        raise RecordError("expecting records in which some method has its algorithm forced, got none")
    return rules


def of_choices(chosen: Sequence[LibraryChoice], ranks: int) -> Rules:
    """The rules that follow from predicted choices; from twice the largest size on, the library chooses.

    :param chosen: choices for several methods, for each by ascending size.
    :param ranks: number of ranks of the job.
    """
    rules: dict[str, dict[int, list[Rule]]] = {}
    for method in dict.fromkeys(one.method for one in chosen):
        times = ranks if NUMBERS[method][1] else 1
        of_method = [one for one in chosen if one.method == method]
        rows = [(one.nbytes * times, one.number, one.segment) for one in of_method]
        found = [(0, FIXED, 0), *rows, (2 * rows[-1][0], FIXED, 0)]
        changes = [
            row for row, before in zip(found, [None, *found], strict=False) if before is None or row[1:] != before[1:]
        ]
        if len(changes) > 1:
            rules[method] = {ranks: changes}
    return rules


def write_classic(rules: Rules, words: Sequence[str]) -> str:
    """The rules in the format that Open MPI 4 and 5 read; for other numbers of ranks the library chooses.

    A file without a version has four numbers in a rule, and lacks only a limit of messages in flight. Releases of 4.1
    and 5.0 read it; a second version with this limit is read from 5.0.7 on.

    :param rules: the rules.
    :param words: lines that say where the rules are from.
    """
    lines = [*(f"# {line}" for line in words), f"{len(rules)} # collectives"]
    for method, of_ranks in sorted(rules.items(), key=lambda one: NUMBERS[one[0]][0]):
        sections: dict[int, Sequence[Rule]] = {1: [(0, FIXED, 0)]}
        for ranks, found in of_ranks.items():
            sections[ranks] = found
            sections.setdefault(ranks + 1, [(0, FIXED, 0)])
        lines += [f"{NUMBERS[method][0]} # {method}", f"{len(sections)} # numbers of ranks, each up to the next"]
        for ranks, found in sorted(sections.items()):
            lines += [f"{ranks} # ranks", f"{len(found)} # sizes in bytes, each up to the next"]
            lines += [f"{size} {number} 0 {segment}" for size, number, segment in found]
    return "\n".join([*lines, ""])


def write_json(rules: Rules) -> str:
    """The rules in the format that Open MPI reads from 6.0 on; elsewhere the library chooses."""
    collectives = {}
    for method, of_ranks in rules.items():
        collectives[method.lower().replace("_", "")] = [
            {"comm_size_min": ranks, "comm_size_max": ranks, "rules": list(_spans(found))}
            for ranks, found in sorted(of_ranks.items())
        ]
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1) + "\n"


def _spans(found: Sequence[Rule]) -> Iterator[dict[str, int | str]]:
    for (size, number, segment), after in zip(found, [*found[1:], None], strict=True):
        if number != FIXED:
            span: dict[str, int | str] = {"msg_size_min": size, "msg_size_max": after[0] - 1 if after else "inf"}
            yield span | {"alg": number} | ({"seg_size": segment} if segment else {})


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
    if not word.isdecimal() or len(word) > 9:
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
