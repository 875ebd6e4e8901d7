"""Files of mappings for launchers, written and read, with one module per family of formats.

Each format has a function that makes the text of a file. The text begins with comments: the command that launches a
program with this file, and the hosts, slots and digest of the allocation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...inputs import guarded, kind_of
from ..machine import Machine
from ..mapping import Mapping
from . import jsonio, lsf, mpich, openmpi, slurm
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
# Readers try to recognise a file in this order; a list of hosts is last because it matches most.
_READERS = (jsonio, openmpi, lsf.ERF, lsf.AFFINITY, slurm.PLANE, mpich.RANK_ORDER, mpich.HYDRA, slurm)


def write_mapping(mapping: Mapping, form: str) -> str:
    """The text of a mapping's file.

    :param mapping: mapping to write.
    :param form: ``rankfile`` (Open MPI 4), ``rankfile5`` (Open MPI 5), ``mpich`` (``MPICH_RANK_ORDER``), ``hydra``
        (MPICH's host file), ``slurm`` (arbitrary host file), ``plane`` (srun's option), or ``json``.
    :raises RankFileError: if the format is unknown, or cannot express the mapping.
    """
    if form not in WRITERS:
        raise RankFileError(f"expecting a format of {', '.join(WRITERS)}, got {form!r}")
    return WRITERS[form](mapping)


def read_mapping(path: str | os.PathLike[str], machine: Machine | None = None) -> Mapping:
    """Read a mapping from a file in any of the formats, written by topompi or by another program.

    Formats that give only a rank's host put the ranks of a host on its slots in ascending order.

    :param path: path of the file.
    :param machine: the allocation. It must equal the file's if the file contains its digest, and is required otherwise.
    :raises RankFileError: if the file contains no mapping; the message names file, line and the expected content.
    """
    with guarded(str(path), RankFileError):
        file = RankFile.open(Path(path), machine)
        for form in _READERS:
            if form.recognise(file):
                mapping: Mapping = form.read(file)
                return mapping
    kind = kind_of(file.text[:4096].encode(), "a mapping")
    raise RankFileError(f"{file.name}: expecting a mapping: one of {', '.join(WRITERS)}; got {kind}")
