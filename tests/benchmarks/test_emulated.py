"""The benchmark ``emulated``: the order of its jobs, the work left to a further run, and its report."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.choices import Cell, main
from benchmarks.emulated import balanced, missing
from benchmarks.emulated_report import markdown, read
from benchmarks.uplinks import hosts_below, oversubscription, rates_of
from osu_like_bench.emulate import emulated_fabric
from tests.support import examples
from topompi.errors import BenchmarkError, SourceError
from topompi.mpi.execution.specs import NATIVE

JOB = ("4x4", "4:1", "block", 1, "python")
counts = st.integers(1, 4)


def cell(collective="bcast", size=1024, gain=1.0, algorithm="native", library="MPICH", calls=40):
    """A cell as the ranks write it, the library's calls some times as long as topompi's."""
    times = {"topompi": [1.0] * calls, "library": [gain] * calls}
    names = {"library": library, "collective": collective, "size": size}
    return {**names, "algorithms": [algorithm], "reasons": [f"why {algorithm}"], "times": times}


def written(path, *lines):
    """A file with lines of jobs, cells and what was left out."""
    keys = ("job", "cells", "left_out")
    path.write_text("".join(json.dumps(dict(zip(keys, line, strict=False))) + "\n" for line in lines))
    return path


@examples(20)
@given(st.tuples(counts, counts, counts, counts), st.text(max_size=3))
def test_every_beginning_of_the_order_has_each_value_about_as_often(sizes, seed):
    cases = list(product(*map(range, sizes)))
    order = balanced(cases, seed)
    assert sorted(order) == cases
    assert order == balanced(cases, seed)
    for place, size in enumerate(sizes):
        seen = np.cumsum([np.eye(size)[case[place]] for case in order], axis=0)
        assert np.ptp(seen, axis=1).max() <= 2


def test_other_seeds_give_other_orders():
    cases = list(product(range(4), range(3)))
    assert len({tuple(balanced(cases, str(seed))) for seed in range(5)}) > 1


@given(st.lists(counts, min_size=2, max_size=4), st.sampled_from(["4:1", "2:1", "1:1", "1.5:1"]))
def test_uplinks_of_a_ratio_are_over_subscribed_by_it_on_any_leaves(leaves, ratio):
    assert oversubscription(",".join(map(str, leaves)), ratio) == ratio


def test_each_level_has_the_ratio():
    assert hosts_below(emulated_fabric("2x4x2")) == [2, 8]
    assert rates_of("2x4x2", "2:1").uplinks == (12.5e6, 50e6)
    assert [oversubscription(spec, "100M") for spec in ("4x4", "8x2", "2x8", "2x4x2")] == ["4:1", "2:1", "8:1", "8:1"]


@pytest.mark.parametrize("text", ["0:1", "4:2", "x", ""])
def test_other_uplinks_are_refused(text):
    with pytest.raises((BenchmarkError, SourceError), match="--uplink-rate"):
        rates_of("4x4", text)


def test_a_further_run_times_what_no_earlier_one_of_the_job_has(tmp_path):
    cells = list(product(("bcast", "alltoall"), (1024, 4096)))
    assert missing(tmp_path / "none", JOB, cells, 1.0) == cells
    other = (*JOB[:-1], "another")
    path = written(
        tmp_path / "cells.jsonl",
        (JOB, [cell("bcast", 1024)], [("alltoall", 4096, 2.0)]),
        (JOB, []),
        (other, [cell("bcast", 4096)]),
    )
    assert missing(path, JOB, cells, 1.0) == [("bcast", 4096), ("alltoall", 1024)]
    assert missing(path, JOB, cells, 3.0) == [("bcast", 4096), ("alltoall", 1024), ("alltoall", 4096)]
    assert missing(path, other, cells, 1.0) == [one for one in cells if one != ("bcast", 4096)]


def test_times_of_several_files_count_together_and_jobs_of_other_pythons_are_told_by_their_library(tmp_path):
    files = [
        written(tmp_path / "1", (JOB, [cell(gain=2.0, calls=30)])),
        written(tmp_path / "2", ((*JOB[:-1], "p"), [cell(gain=4.0, calls=10), cell(library="Open MPI")])),
        written(tmp_path / "3", (("4x4", "100M", "block", 1, "p"), [cell(gain=2.0, calls=1)])),
    ]
    rows, left_out = read(files)
    assert [(row.library, row.gain.pairs, row.gain.ratio) for row in rows] == [("MPICH", 41, 2.0), ("Open MPI", 40, 1)]
    assert not left_out


def test_the_report_has_means_of_both_halves_what_lost_and_what_is_left(tmp_path):
    fitted = [cell(gain=2.0, algorithm="ring"), cell("bcast", 65536, 0.5, "chain"), cell("gather", 65536, 0.99)]
    held_out = [cell("gather", gain=0.9, calls=6)]
    path = written(
        tmp_path / "cells.jsonl",
        (JOB, fitted, [("alltoall", 1 << 20, 9.0)]),
        (("8x2", "50M", "random:1", 4, "python"), held_out, [("alltoall", 1 << 20, 9.0)]),
    )
    lines = list(markdown(read([path])))
    mean = np.exp(np.mean(np.log([2, 0.5, 0.99])))
    long = np.exp(np.mean(np.log([0.5, 0.99])))
    assert f"| fitted: 4x4 | 4:1 | 2.00 | {long:.2f} | {long:.2f} | {mean:.2f} | 3 | 1 |" in lines
    assert "| held out: 8x2 | 4:1 | 0.90 |  |  | 0.90 | 1 | 1 |" in lines
    assert [line for line in lines if line.startswith("- ")][:2] == [
        "- 4x4, 4:1, block, 1, MPICH, bcast, 65,536: 0.500 [0.500, 0.500], chain: why chain",
        "- 8x2, 4:1, random:1, 4, MPICH, gather, 1,024: 0.900 [0.900, 0.900], 6 calls only, native: why native",
    ]
    assert any(line.startswith("- fitted, left to the library: 1 cells, geometric mean 0.990x") for line in lines)
    assert any(line.startswith("- fitted, by a schedule: 2 cells, geometric mean 1.000x") for line in lines)
    assert "| gather | 1 of 1 | 1 of 1 |" in lines
    assert "| bcast | 0 of 1 | 0 of 1 |" in lines
    assert any(line.endswith("alltoall 1,048,576 (2)") for line in lines)
    assert lines[-1].startswith("| 4x4 | 4:1 | block | 1 | MPICH | bcast | 1,024 | 40 | 2.000 [2.000, 2.000] | ring |")


# --- The benchmark of choices on simulated networks: the contents of its cells, and their summary.


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
