"""The hosts of ranks and of empty slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..machine import Machine
from ..mapping import Mapping

__all__ = ["host_of_all"]


def host_of_all(mapping: Mapping, machine: Machine) -> NDArray[np.int64]:
    """The host of each rank, then of each empty slot, shape (slots,)."""
    return np.concatenate([mapping.host_of_rank, machine.slot_host[mapping.rank_of_slot < 0]])
