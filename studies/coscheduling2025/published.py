"""The source's predicted labels (figures 4.12 and 4.13), its accuracy, and the kinds of programs that they imply.

No profile and no threshold is printed. The kinds, and the order of the programs by memory bandwidth, are those with
which the rules give every label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.rules.kinds import Kind
from topompi.machine.colocation.rules.labels import Labels

__all__ = ["ACCURACY", "MEASURED_NAMES", "NAS", "SPEC", "STATED", "Predicted"]


class Predicted(NamedTuple):
    """A matrix of labels, with the programs' implied properties.

    :ivar characters: implied properties of the programs.
    :ivar letters: labels of each row: b, s or g per column.
    """

    characters: tuple[Labels, ...]
    letters: tuple[str, ...]

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the programs."""
        return tuple(one.program for one in self.characters)

    @property
    def labels(self) -> NDArray[np.int8]:
        """The labels as indices in ``bands.CLASSES``, shape (n, n)."""
        return np.array([["bsg".index(one) for one in row] for row in self.letters], np.int8)


def _of(rows: str) -> Predicted:
    """Read a line per program: name, kind, rank by memory bandwidth, labels."""
    words = [line.split() for line in rows.strip().splitlines()]
    made = tuple(Labels(name, Kind(kind), float(rank)) for name, kind, rank, _ in words)
    return Predicted(made, tuple(row for *_, row in words))


NAS = _of("""
bt.D.256 C_MEM 0 sssssssssbbbb
cg.D.128 M_IRR 0 gsssgggggbbbb
cg.D.64 M_IRR 0 gsssgggggbbbb
cg.E.512 M_IRR 0 gsssgggggbbbb
ep.E.256 C_HEAVY 0 sssssssssssss
ft.D.256 X_USEFUL 0 ggggggggggggg
ft.D.64 X_USEFUL 0 ggggggggggggg
is.D.256 X_USEFUL 0 ggggggggggggg
lu.D.256 C_COMM 0 gggggsssgssss
mg.E.256 M 4 gggggggggsggg
sp.C.64 M 1 gggggggggbsbb
sp.D.121 M 3 gggggggggbgsg
sp.D.256 M 2 gggggggggbgbs
""")
SPEC = _of("""
605.lbm_s.1024 C_HEAVY 0 sssssss
618.tealeaf_s.1024 M 0 gsbgbbg
619.clvleaf_s.1024 M 3 ggsgggg
621.miniswp_s.1024 X_IDLE 0 sssssss
628.pot3d_s.1024 M 2 ggbgsgg
634.hpgmgfv_s.1024 M 1 ggbgbsg
635.weather_s.1024 X_IDLE 0 sssssss
""")
# Names in the measurements that differ from those of the matrices: the matrix says is.D.256, the text is.E.256.
MEASURED_NAMES = {"is.D.256": "is.E.256"}
ACCURACY = {"NAS": (141, 12, 16), "SPEC": (31, 11, 7)}  # fully correct, sufficiently correct, wrong
# Measured speed-ups that the text states, with the verdicts on the predicted labels that follow from the bands.
STATED = (
    ("mg.E.256", "ep.E.256", 1.71, "fully correct"),
    ("ep.E.256", "mg.E.256", 0.96, "fully correct"),
    ("mg.E.256", "sp.D.121", 1.01, "wrong"),
    ("sp.D.121", "mg.E.256", 1.03, "wrong"),
    ("ft.D.64", "ft.D.64", 1.13, "fully correct"),
    ("is.D.256", "is.D.256", 1.02, "wrong"),
)
