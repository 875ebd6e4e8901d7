"""What a communicator asks of rank 0's environment before anything else."""

from __future__ import annotations

import os

import numpy as np
from mpi4py import MPI

from ..errors import TopompiError
from ..selection.settings import check_settings

__all__ = ["checks_wanted"]

WRONG = 2


def checks_wanted(comm: MPI.Intracomm) -> bool:
    """Whether rank 0's ``TOPOMPI_CHECK`` asks for checks; collective: one broadcast of a byte.

    :param comm: a communicator of the MPI library's own kind.
    :raises TopompiError: the same on all ranks, where a variable of rank 0's is not as wanted.
    """
    failure: TopompiError | None = None
    answer = np.zeros(1, dtype=np.int8)
    if comm.Get_rank() == 0:
        try:
            check_settings(os.environ, speaks=MPI.COMM_WORLD.Get_rank() == 0)
            answer[0] = os.environ.get("TOPOMPI_CHECK", "") not in ("", "0")
        except TopompiError as error:
            failure, answer[0] = error, WRONG
    comm.Bcast(answer)
    if answer[0] != WRONG:
        return bool(answer[0])
    told: TopompiError = comm.bcast(failure)
    raise told
