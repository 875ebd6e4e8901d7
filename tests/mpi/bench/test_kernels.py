"""Communication kernels under mpirun, on both sides."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from osu_like_bench.cli import main as bench
from osu_like_bench.compare import main as compare
from osu_like_bench.kernels import KERNELS
from tests.bench.test_kernels import TREE
from tests.support import ROOT, run_mpi

# --- real ---


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.long
def test_all_kernels_run_validated_on_both_sides_and_notice_what_is_missing(size):
    done = run_mpi(size, ROOT / "tests" / "programs" / "kernels.py", timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all done" in done.stderr
    assert done.stdout.count("Pass") >= 2 * len(KERNELS)
    assert "topompi's order of ranks" in done.stdout
    if size > 1:
        assert re.search("; [1-9] ranks moved", done.stdout), "a random order can be improved"


def test_a_collective_takes_no_options_of_kernels(capsys):
    assert bench(["gather", "--reorder", "none"]) == 1
    assert capsys.readouterr().err.count("--reorder: expecting a kernel") == 1


def test_records_of_the_two_orders_compare(tmp_path):
    files = [str(tmp_path / f"{name}.json") for name in ("topompi", "none")]
    common = ["-m", "64", "-i", "20", "-x", "1", "--topology", TREE, "--hosts", "h[0000-0003]", "--place", "random:1"]
    runs = [["stencil3d", *common, "--reorder", Path(file).stem, "--json", file] for file in files]
    done = run_mpi(4, "-c", f"from osu_like_bench.cli import main; assert not any(map(main, {runs!r}))")
    assert done.returncode == 0, done.stderr
    assert [json.loads(Path(file).read_text())["options"]["reorder"] for file in files] == ["topompi", "none"]
    assert compare(files) == 0
