"""Mappings as the launchers take them, and back: one module a family of formats.

Each format has ``write(mapping)`` and says how its file is used; every file carries the hosts, the slots and the digest
of the allocation that it is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...inputs import guarded, kind_of
from ..machine import Machine
from ..mapping import Mapping
from . import jsonio, mpich, openmpi, slurm
from .header import RankFile, RankFileError

__all__ = ["WRITERS", "RankFileError", "read_mapping", "write_mapping"]

WRITERS: dict[str, Callable[[Mapping], str]] = {
    "rankfile": openmpi.write,
    "rankfile5": openmpi.write5,
    "mpich": mpich.write_rank_order,
    "hydra": mpich.write_hydra,
    "slurm": slurm.write,
    "plane": slurm.write_plane,
    "json": jsonio.write,
}
# Recognised in this order; the list of hosts is what is left.
_READERS = (jsonio, openmpi, slurm.PLANE, mpich.RANK_ORDER, mpich.HYDRA, slurm)


def write_mapping(mapping: Mapping, form: str) -> str:
    """The text of a mapping's file.

    :param form: ``rankfile`` (Open MPI 4), ``rankfile5`` (Open MPI 5), ``mpich`` (``MPICH_RANK_ORDER``), ``hydra``
        (MPICH's host file), ``slurm`` (arbitrary host file), ``plane`` (srun's option), ``json``.
    :raises RankFileError: for another word, and for a mapping that the format cannot express.
    """
    if form not in WRITERS:
        raise RankFileError(f"expecting a format of {', '.join(WRITERS)}, got {form!r}")
    return WRITERS[form](mapping)


def read_mapping(path: str | os.PathLike[str], machine: Machine | None = None) -> Mapping:
    """The mapping of a file in any of the formats, ours or another program's.

    Formats that name a rank's host alone put the ranks of a host on its slots in ascending order.

    :param machine: the allocation: must be the file's where the file says (its digest), and is needed where not.
    :raises RankFileError: with file and line, and what should stand there.
    """
    with guarded(str(path), RankFileError):
        file = RankFile.open(Path(path), machine)
        for form in _READERS:
            if form.recognise(file):
                mapping: Mapping = form.read(file)
                return mapping
    kind = kind_of(file.text[:4096].encode())
    raise RankFileError(f"{file.name}: expecting a mapping: one of {', '.join(WRITERS)}; got {kind}")
