"""Intel MPI's variables ``I_MPI_ADJUST_*``, which select its algorithms by size, as lines of a shell."""

from __future__ import annotations

from collections.abc import Sequence

from ..prediction.librarychoices import LibraryChoice

__all__ = ["write_adjust"]


def write_adjust(chosen: Sequence[LibraryChoice], ranks: int, words: Sequence[str]) -> str:
    """The variables for the choices; Intel MPI chooses for all other sizes and numbers of ranks.

    :param chosen: choices for several methods, for each by ascending size, with Intel's numbers.
    :param ranks: number of ranks of the job.
    :param words: lines that say where the choices are from.
    """
    lines = [f"# {line}" for line in words]
    for method in dict.fromkeys(one.method for one in chosen):
        of_method = [one for one in chosen if one.method == method]
        ends = [*(one.nbytes for one in of_method[1:]), 2 * of_method[-1].nbytes]
        spans: list[tuple[int, int, int]] = []  # number of the algorithm, first size, size after the last
        for one, end in zip(of_method, ends, strict=True):
            if spans and spans[-1][0] == one.number:
                spans[-1] = (one.number, spans[-1][1], end)
            else:
                spans.append((one.number, one.nbytes, end))
        rules = [f"{number}:{start}-{end - 1}@{ranks}-{ranks}" for number, start, end in spans if number]
        if rules:
            lines.append(f"export I_MPI_ADJUST_{method.upper()}='{';'.join(rules)}'")
    return "\n".join([*lines, ""])
