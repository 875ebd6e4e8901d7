"""The study of real pairs: its kernels, its segments, and its tables from given results."""

import os
import shutil
import subprocess
import time
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from studies.poppa import figures
from studies.poppa.applications import applications, cells_of, literal
from studies.poppa.coverage import LENGTHS, REFILLS
from studies.poppa.pairs import Result, Segment, ratios, segment
from studies.poppa.programs import KERNELS, compiled, started
from tests.colocation.estimates.test_estimators import noisy
from tests.studies.test_studies import rows_of
from topompi.machine.colocation.estimates.estimators import estimate
from topompi.machine.colocation.estimates.records import ProgressRates, Records
from topompi.machine.shutter.published import path_of

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("kernels"))


@needs_gcc
@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_ends_after_its_steps_and_leaves_no_counter(kernels: Path, name: str):
    process = subprocess.Popen([kernels, name, "200"], stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert float(out) >= 0
    assert not Path(path_of(os.geteuid(), process.pid)).exists()


@needs_gcc
def test_a_kernel_counts_while_it_runs_and_stands_still_when_stopped(kernels: Path):
    core = min(os.sched_getaffinity(0))
    with started(("null",), (core,), kernels) as (one,):
        assert segment([one], None, 0.05).steps[0] > 0
        one.stop()
        time.sleep(0.02)
        count = one.count()
        time.sleep(0.02)
        assert one.count() == count
        one.go()
    assert not Path(f"/proc/{one.pid}").exists()


def _shared(start: float, rate: float, alone: float) -> tuple[Segment, list[tuple[object, ...]]]:
    """A second of both jobs at a rate, of which 0.1 s were alone at another, and 0.2 s went to another process."""
    rows = [("during", "0", 0, start + 0.4, start + 0.5, 0.1 * alone)]
    return Segment(None, start, start + 1, (int(0.7 * rate + 0.1 * alone), 0), (0.8, 0.0)), rows


def test_performance_is_the_rate_beside_the_other_job_without_windows_alone_over_that_alone():
    first, rows = _shared(0.0, 600.0, 1000.0)
    last, more = _shared(2.0, 800.0, 1000.0)
    mine = Segment(0, 1.0, 2.0, (900, 0), (0.9, 0.0))  # a tenth of the time went to another process
    ratio, alone = ratios([first, mine, last], 0, Records.of([*rows, *more]))
    assert alone.tolist() == [1000.0]
    assert ratio == pytest.approx([0.7])


def _result(job: str, performance: float, measured: float) -> Result:
    rate = np.full((3, 40, 4), 1000.0)
    rate[[0, 2]] *= performance
    rate[1, ::2] = np.nan
    return Result(job, "other", np.full(5, measured), np.full(5, 1000.0), ProgressRates(rate), 0.01)


def test_the_table_of_overhead_has_the_numbers_of_equations_9_and_10():
    found = {"ratios": [[1.008, 1.01]] * 3, "stopped": 0.0079, "daemon": 0.004}
    ((_, head, rows),) = figures.TABLES["overhead"]({"overhead 3.2": found})
    (row,) = list(rows)
    assert len(row) == len(head)
    assert row[:5] == ["3.2", "0.76%", "0.79%", "1.0077", "1.0090 (1.0090 to 1.0090)"]


def test_the_table_of_emptied_caches_has_estimates_with_and_without_long_shutters():
    one = _result("random", 0.7, 0.7)
    warm = np.where(np.arange(40) % 4 == 1, 1250.0, np.nan)
    found = figures.of_evicted([replace(one, groups=replace(one.groups, warm=warm))])
    ((_, head, rows),) = figures.TABLES["evict"]({"evict random/triad": found})
    (row,) = list(rows)
    assert len(row) == len(head)
    assert [cell[:5] for cell in row[1:]] == ["0.700", "0.560", "0.700"]


# --- The study of fair prices in the model: its page has what the study makes, and no demand fails.


def test_no_case_of_the_grid_has_fewer_than_90_of_100_intervals_of_the_default_with_the_truth():
    head, *rows = rows_of("poppa coverage")
    name, least = head.index("estimator"), head.index("least coverage")
    default = signature(estimate).parameters["method"].default
    found = [int(row[least].partition("%")[0]) for row in rows if row[name] == default]
    assert len(found) == len(REFILLS) * len(LENGTHS)
    assert min(found) >= 90


def test_phases_of_1_ms_are_found_by_balanced_and_not_by_the_source():
    first, second, *_ = applications()
    loud = applications()[10]
    cells = [cells_of([one, loud], nodes=128, rounds=4, seed=seed)[0] for one in (first, second) for seed in (0, 1)]
    assert sum(abs(cell.error("balanced")) for cell in cells) / 4 < 0.03
    assert max(abs(cell.error("algorithm 4")) for cell in cells) > 0.05


def test_algorithm_4_word_for_word_has_the_published_bias_and_is_1_if_no_shutter_passes():
    assert literal(noisy(1.0, 0.02)) == pytest.approx(0.975, abs=0.002)
    assert literal(noisy(0.5, 0.0, 50)) == pytest.approx(0.5)
    assert literal(noisy(1.0, 0.0, 50)) == 1.0


def test_algorithm_4_takes_no_shutter_of_another_job():
    groups = noisy(0.5, 0.0, 50)
    rates = groups.rates.copy()
    rates[1, ::2] = np.nan  # the job stands still for another one
    assert literal(replace(groups, rates=rates)) == literal(groups) == pytest.approx(0.5)
