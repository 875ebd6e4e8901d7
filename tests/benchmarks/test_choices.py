"""The benchmark of choices on simulated networks: the contents of its cells, and their summary."""

from __future__ import annotations

import json

import pytest

from benchmarks.choices import Cell, main
from topompi.mpi.execution.specs import NATIVE


def test_every_cell_has_the_chosen_algorithm_and_none_beats_the_bound(tmp_path, capsys):
    kept = tmp_path / "cells.json"
    told = ["--topology", "xgft:4,4;1,1", "--hosts", "8", "--ppn", "2", "--sizes", "4K,256K"]
    assert main([*told, "--collectives", "bcast,allreduce", "-o", str(kept)]) == 0
    cells = [Cell(**row) for row in json.loads(kept.read_text())]
    assert [(one.collective, one.nbytes) for one in cells] == [
        (collective, size) for collective in ("bcast", "allreduce") for size in (4096, 262144)
    ]
    for one in cells:
        assert one.chosen == NATIVE or one.chosen in one.seconds
        assert min(one.library, *one.seconds.values()) >= one.bound
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 5
    assert printed[-1].startswith("4 cells: regret median ")


@pytest.mark.parametrize(
    ("chosen", "best", "regret", "gain"),
    [(NATIVE, "ring", 2.0, 1.0), ("ring", "ring", 1.0, 2.0), ("tree", "ring", 4.0, 0.5)],
)
def test_regret_and_gain_count_the_library_as_one_of_the_algorithms(chosen, best, regret, gain):
    cell = Cell("bcast", 1, 0.5, 2.0, {"ring": 1.0, "tree": 4.0}, chosen)
    assert (cell.best, cell.regret, cell.gain) == (best, regret, gain)
