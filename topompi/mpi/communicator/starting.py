"""The settings in rank 0's environment, which all ranks get when a communicator is made."""

from __future__ import annotations

import os
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from ...errors import SettingError, TopompiError
from ...inputs.settings import WORDS, check_settings, native_calls, patience, tuning, word_of
from ...inputs.slurm.environment import worlds_of_one
from ..selection.policy import Policy, is_forgetful

if TYPE_CHECKING:
    from ..selection.rules import Rules

__all__ = ["settings_of"]

# Bits of rank 0's answer: a variable is invalid, a rules file follows, nothing is measured or remembered, calls are
# timed in trials.
WRONG, RULES, FORGETFUL, MEASURES = 1, 2, 4, 8


def settings_of(comm: MPI.Intracomm) -> Policy:
    """The settings in rank 0's environment, by which all ranks choose and check; collective.

    :param comm: an instance of mpi4py's own class.
    :raises TopompiError: if a variable in rank 0's environment is invalid; the same on all ranks.

    Cost: one broadcast of 16 bytes, and one of the rules file if there is a rules file.
    """
    said: tuple[str, str] | TopompiError | None = None
    answer = np.zeros(4, dtype=np.int32)
    words = ("", *WORDS["TOPOMPI_NEIGHBOURS"])
    if comm.Get_rank() == 0:
        try:
            check_settings(os.environ, speaks=MPI.COMM_WORLD.Get_rank() == 0)
            word = words.index(word_of("TOPOMPI_NEIGHBOURS", os.environ))
            answer[1:] = patience(os.environ), native_calls(os.environ), word
            answer[0] |= FORGETFUL * is_forgetful(os.environ)
            answer[0] |= MEASURES * (tuning(os.environ) in ("measure", "again"))
            _note_worlds_of_one()
            if name := os.environ.get("TOPOMPI_RULES"):
                from ...inputs import read_text  # imports the code that unpacks archives, and most jobs have no rules

                said = name, read_text(name, SettingError, "TOPOMPI_RULES")
                _parsed(*said)
                answer[0] |= RULES
        except TopompiError as error:
            said, answer[0] = error, WRONG
    comm.Bcast(answer)
    if answer[0] & (WRONG | RULES):
        said = comm.bcast(said)
    if isinstance(said, TopompiError):
        raise said
    rules = None if said is None else _parsed(*said)
    forgetful, measures = (bool(answer[0] & bit) for bit in (FORGETFUL, MEASURES))
    return Policy(rules, forgetful, int(answer[2]), words[answer[3]], measures, int(answer[1]))


@cache
def _note_worlds_of_one() -> None:
    """Print once that each task of srun is a world of its own, unless ``TOPOMPI_FALLBACK`` is ``silent``."""
    note = worlds_of_one(os.environ, MPI.COMM_WORLD.Get_size())
    if note and word_of("TOPOMPI_FALLBACK", os.environ) != "silent":
        print(f"topompi: {note}", file=sys.stderr, flush=True)


@lru_cache(maxsize=8)
def _parsed(name: str, text: str) -> Rules:
    from ..selection.rules import Rules  # imports all generators of schedules, and most jobs have no rules

    return Rules.parse(text, name)
