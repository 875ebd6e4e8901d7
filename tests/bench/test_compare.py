"""The comparison of two artificial records: known ratios, refusals, drawings, and the command without MPI."""

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.compare import ComparisonTable, SideTimes, compare_records, main
from osu_like_bench.options import Options
from osu_like_bench.record import Circumstances, Record, SizeResult
from osu_like_bench.statistics import LEAST_TIMES, compare_runs, summary
from tests.support import examples
from topompi.errors import BenchmarkError

SIZES = (1, 1024, 65536)
FACTS = Circumstances(
    mpi="Open MPI 5.0.11",
    versions={"mpi": "Open MPI v5.0.11", "topompi": "0.1.0"},
    ranks=4,
    nodes=("n0", "n0", "n1", "n1"),
    hosts=("h0", "h0", "h1", "h1"),
    virtual=True,
    topology="tree.txt",
    description="2 hosts, 1 switch",
    affinity=("0-1",) * 4,
    cpu="Imaginary 9000",
    cpus=2,
    load=(0.0, 0.0, 0.0),
    oversubscribed=False,
    date="2026-01-01T00:00:00+00:00",
)


def times(seed: int, factor: float = 1.0, count: int = 200, sigma: float = 0.1) -> tuple[float, ...]:
    """Seconds around ``factor`` microseconds, with the long tail that latencies have."""
    return tuple((factor * 1e-6 * np.random.default_rng(seed).lognormal(0, sigma, count)).tolist())


def made(seed: int, factors: dict[int, float] | None = None, sides: tuple[str, ...] = ("topompi",), **facts) -> Record:
    """A record whose median at a size is its factor times one microsecond."""
    factors = dict.fromkeys(SIZES, 1.0) if factors is None else factors
    results = tuple(
        SizeResult(size, side, 1.0, 1.0, 1.0, None, times(97 * seed + 7 * i + j, factor * (1 + j)))
        for i, (size, factor) in enumerate(factors.items())
        for j, side in enumerate(sides)
    )
    return Record(Options("gather", sides=sides), replace(FACTS, **facts), results)


def table(first: Record, second: Record, across: bool = False) -> ComparisonTable:
    chosen = [SideTimes.choose(name, record, "topompi") for name, record in (("A", first), ("B", second))]
    return compare_records(*chosen, across=across)


@pytest.fixture
def write(tmp_path: Path):
    """Writes records to files a.json and b.json and returns their paths."""

    def both(*records: Record) -> list[str]:
        paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
        for path, record in zip(paths, records, strict=True):
            Path(path).write_text(record.to_json(), encoding="utf-8")
        return paths

    return both


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was said on standard error, line by line; nothing may be on standard output."""
    captured = capsys.readouterr()
    assert not captured.out
    lines = captured.err.splitlines()
    assert all(line.startswith("osu_like_bench: compare: ") for line in lines), lines
    return [line.removeprefix("osu_like_bench: compare: ") for line in lines]


# Statistics


@examples(20)
@given(st.integers(0, 1000), st.floats(1.3, 4), st.integers(100, 300))
def test_a_known_ratio_is_found_and_turning_the_records_turns_the_verdict(seed: int, factor: float, count: int) -> None:
    generator = np.random.default_rng(seed)
    # Quantiles of one distribution in random order: the medians' ratio is the factor but for the grid.
    one, other = (np.exp(0.1 * np.quantile(generator.normal(size=4000), np.linspace(0, 1, n))) for n in (count, 200))
    first, second = (summary(generator.permutation(x), generator) for x in (one, factor * other))
    there, back = compare_runs([first], [second]), compare_runs([second], [first])
    assert there.low < there.ratio < there.high
    assert there.low <= factor <= there.high
    assert there.pairs == min(count, 200)
    assert there.verdict == f"{there.ratio:.2f}x faster"
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.verdict == f"{there.ratio:.2f}x slower"


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        first, second = generator.lognormal(0, 0.2, 150), 1.5 * generator.lognormal(0, 0.2, 100)
        found = compare_runs([summary(first, generator)], [summary(second, generator)])
        held += found.low <= 1.5 <= found.high
    assert held >= 88


def test_the_overall_ratio_is_the_geometric_mean_and_its_interval_is_narrower() -> None:
    generator = np.random.default_rng(3)
    factors = (2.0, 0.5, 1.6, 3.0)
    first = [summary(np.array(times(seed)), generator) for seed in range(4)]
    second = [summary(np.array(times(seed, factor)), generator) for seed, factor in enumerate(factors)]
    overall = compare_runs(first, second)
    assert overall.ratio == pytest.approx(math.prod(factors) ** (1 / 4))
    each = [compare_runs([a], [b]) for a, b in zip(first, second, strict=True)]
    assert math.log(overall.high / overall.low) < min(math.log(one.high / one.low) for one in each)


def test_a_summary_has_the_median_the_quartiles_and_an_interval_around_the_median() -> None:
    values = np.random.default_rng(1).permutation(np.arange(1.0, 102.0))
    found = summary(values, np.random.default_rng(0))
    assert (found.median, found.quartiles, found.times) == (51, (26, 76), 101)
    assert found.interval[0] < 51 < found.interval[1]
    assert found.unstable
    assert not summary(100 + values / 100, np.random.default_rng(0)).unstable


@pytest.mark.parametrize("values", [[], [0.0], [[1.0]], [1.0, -1.0], [math.nan], [math.inf]])
def test_times_that_no_clock_measures_are_refused(values: list[object]) -> None:
    with pytest.raises(BenchmarkError, match="expecting times above 0 s"):
        summary(np.array(values), np.random.default_rng(0))


def test_unlike_numbers_of_sizes_are_refused() -> None:
    one = summary(np.ones(3), np.random.default_rng(0))
    for first, second in (([], []), ([one], [])):
        with pytest.raises(BenchmarkError, match="expecting the same sizes"):
            compare_runs(first, second)


# Tables


def test_a_record_against_itself_is_not_significant_at_any_size() -> None:
    found = table(made(1), made(1))
    assert [row.verdict for row in (*found.rows, found.overall)] == ["not significant"] * 4
    assert found.overall.ratio == 1
    assert not found.notes


def test_runs_of_one_distribution_are_seldom_called_different() -> None:
    verdicts = [row.verdict for seed in range(20) for row in table(made(seed), made(seed + 100)).rows]
    assert verdicts.count("not significant") >= 0.85 * len(verdicts)


def test_each_size_has_its_own_ratio_and_sizes_of_one_record_alone_are_named() -> None:
    first, second = made(1, {1: 1.0, 8: 1.0, 64: 2.0}), made(2, {8: 2.0, 64: 1.0, 512: 1.0})
    found = table(first, second)
    assert found.sizes == (8, 64)
    assert [row.ratio for row in found.rows] == pytest.approx([2, 0.5], rel=0.1)
    assert [row.verdict[-6:] for row in found.rows] == ["faster", "slower"]
    ratios = [row.ratio for row in found.rows]
    assert found.overall.ratio == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
    assert found.notes == ("Left out: only A has 1 bytes", "Left out: only B has 512 bytes")


def test_comparisons_are_the_same_each_time() -> None:
    assert table(made(1), made(2)).to_json() == table(made(1), made(2)).to_json()


def test_unstable_few_and_wrong_results_are_named_with_their_record() -> None:
    wild = SizeResult(1, "topompi", 1.0, 1.0, 1.0, True, times(5, sigma=2, count=50))
    few = SizeResult(2, "topompi", 1.0, 1.0, 1.0, True, times(6, count=LEAST_TIMES - 1, sigma=0.01))
    wrong = SizeResult(4, "topompi", 1.0, 1.0, 1.0, False, times(7))
    good = [SizeResult(size, "topompi", 1.0, 1.0, 1.0, None, times(size)) for size in (1, 2, 4)]
    found = table(replace(made(1), results=(wild, few, wrong)), replace(made(1), results=tuple(good)))
    words = [re.match(r"(\w+): A: .* (\d+) bytes", note) for note in found.notes]
    assert [(match[1], match[2]) for match in words if match] == [("Unstable", "1"), ("Few", "2"), ("Fail", "4")]
    assert len(words) == 3
    assert found.rows[1].verdict == "too few pairs"


def test_versions_pinning_and_oversubscription_are_cautions_only() -> None:
    other = made(1, mpi="Open MPI 5.0.9", versions={"topompi": "0.2.0"}, affinity=("0",) * 4, oversubscribed=True)
    assert table(made(1), other).notes == (
        "Versions differ: MPI: Open MPI 5.0.11 in A, Open MPI 5.0.9 in B",
        "Versions differ: topompi: 0.1.0 in A, 0.2.0 in B",
        "Pinning differs: the ranks were allowed other CPUs",
        "Oversubscribed: B: times measure scheduling too",
    )


def test_a_native_side_that_moved_along_is_named_as_drift() -> None:
    sides = ("topompi", "native")
    slow = made(2, dict.fromkeys(SIZES, 1.3), sides)
    assert "Drift: native, the control, is itself 1.3" in table(made(1, sides=sides), slow).notes[0]
    assert not table(made(1, sides=sides), made(2, sides=sides)).notes
    assert not table(made(1), slow).notes


# Refusals

UNLIKE = {
    "ranks": ({"ranks": 8}, ["4", "8"]),
    "nodes": ({"nodes": ("n0", "n0", "n0", "n1")}, ["'n1'", "'n0'"]),
    "hosts": ({"hosts": ("h0", "h1", "h0", "h1")}, ["'h0'", "'h1'"]),
    "virtual": ({"virtual": False}, ["True", "False"]),
    "topology": ({"topology": "other.txt"}, ["'tree.txt'", "'other.txt'"]),
    "fabric": ({"description": "3 hosts"}, ["'2 hosts, 1 switch'", "'3 hosts'"]),
    "CPU model": ({"cpu": "Real 1"}, ["'Imaginary 9000'", "'Real 1'"]),
    "CPU count": ({"cpus": 64}, ["2", "64"]),
    "MPI vendor": ({"mpi": "MPICH 5.0.1"}, ["'Open MPI'", "'MPICH'"]),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_an_unlike_fact_is_refused_with_both_values(name: str, write, capsys) -> None:
    change, (one, other) = UNLIKE[name]
    a, b = write(made(1), made(1, **change))
    assert main([a, b]) == 1
    (line,) = said(capsys)
    assert line.startswith(name)
    assert line.endswith(f": expecting the same, got {one} in {a} and {other} in {b}")


def test_every_unlike_fact_has_its_line(write, capsys) -> None:
    second = made(1, ranks=2, nodes=("n0",) * 2, hosts=("h0",) * 2, mpi="MPICH 5.0.1", cpus=1)
    second = replace(second, options=Options("scatter", root="1"))
    assert main(write(made(1), second)) == 1
    names = [line.partition(":")[0] for line in said(capsys)]
    assert names == ["benchmark", "root", "ranks", "nodes", "hosts", "CPU count", "MPI vendor"]


def test_other_mpi_vendors_are_compared_where_the_user_says_so(write, capsys) -> None:
    paths = write(made(1), made(1, mpi="MPICH 5.0.1", versions=FACTS.versions))
    assert main([*paths, "--across", "mpi"]) == 0
    assert "# Versions differ: MPI: Open MPI 5.0.11 in " in capsys.readouterr().out


def test_a_native_record_without_a_topology_is_compared_with_one_that_has_it() -> None:
    native = made(1, sides=("native",), hosts=FACTS.nodes, virtual=False, topology="", description="")
    assert table(made(1), native).series[1].side == "native"
    with pytest.raises(BenchmarkError, match="nodes of 4 rank"):
        table(made(1), replace(native, facts=replace(native.facts, nodes=("x",) * 4)))


# Sides


def test_the_side_is_topompi_the_named_one_or_the_only_one(write, capsys) -> None:
    both, native = made(1, sides=("topompi", "native")), made(1, sides=("native",))
    for second, flags, sides in (
        (both, [], ["topompi", "topompi"]),
        (both, ["--side", "native"], ["native", "native"]),
        (native, [], ["topompi", "native"]),
        (native, ["--side", "native"], ["native", "native"]),
    ):
        assert main([*write(both, second), "--json", *flags]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [found["a"]["side"], found["b"]["side"]] == sides


# The command


def test_the_printed_table_says_what_the_json_says(write, capsys) -> None:
    paths = write(made(1), made(2, {1: 1.0, 1024: 1.5, 65536: 0.5}))
    assert main(paths) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#") or "Geometric" in line]
    assert main([*paths, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for line, row in zip(rows, found["sizes"], strict=False):
        medians = [f"{row[side]['median'] * 1e6:.2f}" for side in "ab"]
        spreads = [f"{1e6 * (row[side]['quartiles'][1] - row[side]['quartiles'][0]):.2f}" for side in "ab"]
        assert line.split()[:6] == [
            str(row["size"]),
            medians[0],
            spreads[0],
            medians[1],
            spreads[1],
            f"{row['ratio']:.2f}",
        ]
        assert line.endswith(f"[{row['interval'][0]:.2f}, {row['interval'][1]:.2f}]{row['verdict']:>18}")
    assert found["sizes"][0]["verdict"] == "not significant"
    assert rows[-1].split()[:4] == ["#", "Geometric", "mean", f"{found['geometric_mean']['ratio']:.2f}"]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_drawing_has_both_series_and_is_the_same_each_time(suffix: str, write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    paths, drawings = write(made(1), made(2)), [tmp_path / f"{name}.{suffix}" for name in "xy"]
    for drawing in drawings:
        assert main([*paths, "--draw", str(drawing)]) == 0
    content = drawings[0].read_bytes()
    assert content == drawings[1].read_bytes()
    if suffix == "png":
        assert content.startswith(b"\x89PNG")
    else:
        names = [f"{letter}: {Path(path).stem} (".encode() for letter, path in zip("AB", paths, strict=True)]
        assert all(name in content for name in names), "the ends of the lines name both"
        assert content.count(b'id="FillBetweenPolyCollection_') == 2


def test_without_matplotlib_the_extra_is_named(write, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([*write(made(1), made(2)), "--draw", str(tmp_path / "x.svg")]) == 1
    assert said(capsys) == ["--draw: expecting matplotlib, got none; pip install 'topompi[plot]' brings it"]


def test_what_cannot_be_done_is_said_in_a_line(write, tmp_path: Path, capsys) -> None:
    good, odd = write(made(1), made(1))
    native = tmp_path / "native.json"
    native.write_text(made(1, {4: 1.0}, sides=("native",)).to_json())
    for name, content in {
        "none": '{"format"',
        "bytes": b"\xff\xfe",
        "list": "[]",
        "nothing": replace(made(1), results=()).to_json(),
        "zero": made(1).to_json().replace('"samples": [', '"samples": [0.0, '),
        "words": made(1).to_json().replace('"samples": [', '"samples": ["x", '),
        "lists": made(1).to_json().replace('"samples": [', '"samples": [[1], '),
        "size": made(1).to_json().replace('"size": 1,', '"size": "1",'),
        "mpi": made(1).to_json().replace('"Open MPI 5.0.11"', "5"),
        "side": made(1, sides=("topompi", "native")).to_json().replace('"topompi"', '"other"'),
    }.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert main([good, str(tmp_path / name)]) == 1, name
        (line,) = said(capsys)
        assert str(tmp_path / name) in line
        assert "expecting" in line
    barrier = tmp_path / "barrier.json"
    barrier.write_text(made(1, {0: 1.0}).to_json())
    for arguments, words in (
        ([good, str(tmp_path / "missing")], "No such file"),
        ([good, str(native)], "expecting a message size in both"),
        ([good, odd, "--side", "native"], "--side: expecting one of topompi, got 'native'"),
        ([good, odd, "--side", "a,b,c"], "expecting SIDE or SIDE,SIDE, got 'a,b,c'"),
        ([good, odd, "--draw", "x.pdf"], "expecting a file name in .svg or .png"),
        ([good, odd, "--draw", str(tmp_path / "missing" / "x.svg")], "No such file"),
        ([str(barrier), str(barrier), "--draw", "x.svg"], "expecting message sizes"),
    ):
        assert main(arguments) == 1, arguments
        (line,) = said(capsys)
        assert words in line
    for arguments in ([], [good], [good, odd, odd], [good, odd, "--odd"]):
        assert main(arguments) == 2, arguments
        assert len(said(capsys)) == 1
