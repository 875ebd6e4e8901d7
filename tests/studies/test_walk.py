"""The walk of four programs: hidden cells, pairings, turns of the modes, and tables, with invented times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.coscheduling2025 import walk
from studies.coscheduling2025.hidden import (
    best,
    completed,
    designs,
    hidden_cells,
    machine_time,
    next_design,
    only_pairs,
)
from studies.coscheduling2025.turns import (
    ALONE,
    COMPACT,
    Step,
    Turn,
    modes_of,
    name_of,
    node_seconds,
    plan,
    ratio,
    rounds_of,
)
from studies.coscheduling2025.walk_tables import tables
from tests.support import ROOT, examples, refusal
from topompi.colocation.measuring.plan import Program
from topompi.colocation.speedups.files import write_speedups
from topompi.colocation.speedups.matrix import Speedups

NAMES = ("a", "b", "c", "d")
PAIRINGS = designs(NAMES, 1)
MODES = modes_of(NAMES, PAIRINGS)
values = st.floats(0.4, 2.5)


@st.composite
def matrices(draw: st.DrawFn) -> Speedups:
    ratio = np.array(draw(st.lists(st.lists(values, min_size=4, max_size=4), min_size=4, max_size=4)))
    np.fill_diagonal(ratio, 1)
    return Speedups.of(NAMES, ratio, compact=draw(st.lists(values, min_size=4, max_size=4)), alone=1.0)


def turns_of(seconds: Callable[[str, str | None], float], rounds: int) -> list[Turn]:
    """Turns in which a program takes the same time beside a neighbour each time; the shorter is run once."""
    made = []
    for step in plan(MODES, rounds):
        one, other = step.programs[0], step.programs[-1]
        beside = [(one, None)] if len(step.programs) == 1 else [(one, other), (other, one)]
        runs = tuple((program, seconds(program, neighbour)) for program, neighbour in beside)
        made.append(Turn(step, max(took for _, took in runs), runs))
    return made


def test_four_programs_have_three_pairings_and_two_neighbours_each_are_all_pairs_but_those_of_one():
    assert len(PAIRINGS) == 3
    every = {pair for pairs in PAIRINGS for pair in pairs}
    assert {frozenset(one) for one in designs(NAMES, 2)} == {frozenset(every - set(pairs)) for pairs in PAIRINGS}
    assert designs("abc", 1) == []


@given(st.integers(2, 6), st.integers(1, 3))
def test_each_program_of_a_design_has_as_many_neighbours(count, neighbours):
    programs = "abcdef"[:count]
    for pairs in designs(programs, neighbours):
        assert len(set(map(frozenset, pairs))) == len(pairs)
        assert all(sum(name in pair for pair in pairs) == neighbours for name in programs)


@examples(40)
@given(matrices(), st.sampled_from([1, 2]), st.floats(0.5, 2))
def test_the_rule_and_the_prediction_see_no_hidden_cell(truth, neighbours, factor):
    pairs = next_design(truth, neighbours)
    assert pairs in designs(NAMES, neighbours)
    known = only_pairs(truth, pairs).known
    assert known.sum() == 4 + 4 * neighbours
    other = Speedups.of(NAMES, np.where(known, truth.ratio, truth.ratio * factor), compact=truth.compact)
    assert next_design(other, neighbours) == pairs
    before, after = hidden_cells(truth, pairs), hidden_cells(other, pairs)
    assert len(before) == 12 - 4 * neighbours
    assert [one.predicted for one in before] == [one.predicted for one in after]
    for one in before:
        assert truth.ratio[truth.number[one.program], truth.number[one.beside]] == one.measured[0]
        assert one.error == pytest.approx((one.predicted[0] - one.measured[0]) / one.measured[0])
    filled = completed(only_pairs(truth, pairs)).ratio
    assert np.array_equal(filled[known], truth.ratio[known])
    assert np.isfinite(filled).all()


@examples(60)
@given(matrices())
def test_the_best_pairing_is_the_one_of_three_with_the_least_machine_time(truth):
    def share(pairs):
        """Node seconds in the pairs over those in compact mode, from run times."""
        took = [
            truth.compact[truth.number[x]] / truth.ratio[truth.number[x], truth.number[y]]
            for one in pairs
            for x, y in (one, one[::-1])
        ]
        return sum(took) / truth.compact.sum()

    for pairs in PAIRINGS:
        assert machine_time(truth, pairs) == pytest.approx(share(pairs))
    assert share(best(truth)) == pytest.approx(min(map(share, PAIRINGS)))


def test_every_round_has_every_turn_once_and_the_second_is_the_first_reversed():
    steps = list(plan(MODES, 3))
    rounds = [[step[1:] for step in steps if step.round == number] for number in range(3)]
    assert rounds[1] == rounds[0][::-1]
    assert rounds[2] == rounds[0]
    assert len(set(steps)) == len(steps) == 3 * (4 + 4 + 3 * 2)
    for mode, parts in MODES.items():
        each = 2 if mode == COMPACT else 1
        assert sorted(name for part in parts for name in part) == sorted(NAMES * each)


def test_a_turn_is_counted_by_whole_nodes_and_by_half_a_node_per_run():
    pair = Turn(Step(0, "m", ("a", "b")), 3.5, (("b", 1.0), ("b", 2.0), ("a", 3.0), ("b", 1.4)))
    assert node_seconds(pair) == (3.5, pytest.approx((3.0 + 1.4) / 2))
    copies = Turn(Step(0, COMPACT, ("a", "a")), 3.5, (("a", 3.0), ("a", 3.4)))
    assert node_seconds(copies) == (1.75, pytest.approx(3.2 / 2))
    assert node_seconds(Turn(Step(0, ALONE, ("a",)), 3.5, (("a", 3.0),))) == (3.5, 3.0)


@examples(60)
@given(matrices())
def test_node_seconds_of_the_modes_are_those_that_the_matrix_expects(truth):
    def seconds(program, beside):
        row = truth.number[program]
        return truth.compact[row] / (1 if beside is None else truth.ratio[row, truth.number[beside]])

    found = rounds_of(turns_of(seconds, 2), MODES)
    assert found[COMPACT].sum() == pytest.approx(2 * truth.compact.sum())
    for pairs in PAIRINGS:
        halves = found[name_of(pairs)][:, 1]
        assert halves / found[COMPACT][:, 1] == pytest.approx(machine_time(truth, pairs))
        assert (found[name_of(pairs)][:, 0] >= halves - 1e-12).all()


def test_a_round_counts_once_it_is_complete_and_the_order_of_turns_does_not_matter():
    turns = turns_of(lambda program, beside: 1.0 + (beside == program), 3)
    whole = rounds_of(turns, MODES)
    assert {len(one) for one in whole.values()} == {3}
    short = rounds_of(turns[::-1][1:], MODES)
    assert {len(one) for one in short.values()} == {2}
    assert np.array_equal(short[COMPACT], whole[COMPACT][:2])
    assert rounds_of([], MODES)[ALONE].shape == (0, 2)


def test_a_ratio_is_the_median_of_ratios_within_rounds():
    over = np.array([2.0, 4.0, 60.0, 8.0, 10.0, 12.0, 14.0])
    assert ratio(over, over / 2) == (2, 2, 2)
    assert ratio(np.array([1.0, 2, 9]), np.array([1.0, 4, 3])) == (1, 0.5, 3)  # the ratio of medians is 2 / 3
    middle, low, high = ratio(over, np.full(7, 2.0))
    assert (middle, low, high) == (5, 1, 30)  # with 7 values the interval of 95 % is the range


HEAT = [[1, 1.4, 1.1, 1], [1, 1, 1, 1], [1.1, 1, 1, 1.4], [1, 1, 1, 1]]  # a+b, c+d is best


def truth_of(heat: object = HEAT) -> Speedups:
    return Speedups.of(NAMES, heat, compact=1.0, alone=1.2)


def seconds_of(program: str, beside: str | None) -> float:
    heat = truth_of()
    return 1 / 1.2 if beside is None else 1 / heat.ratio[heat.number[program], heat.number[beside]]


def test_the_tables_have_the_gain_that_the_times_have():
    named = {name: [list(row) for row in rows] for name, _, rows in tables(truth_of(), turns_of(seconds_of, 7))}
    gains = {row[0].split(" (")[0]: row[1:] for row in named["walk gains"]}
    assert list(gains) == [COMPACT, "worst pairing", ALONE]
    assert {row[0] for row in gains.values()} <= {f"chosen pairing ({name_of(one)})" for one in PAIRINGS}
    modes = {row[0]: row[1:] for row in named["walk modes"]}
    assert "best measured" in modes["a+b, c+d"][0]
    assert "worst measured" in modes["a+d, b+c"][0]
    assert modes["a+b, c+d"][1] == f"{(2 / 1.4 + 2) / 4:.3f}"
    assert modes["a+b, c+d"][3].startswith(f"{(2 / 1.4 + 2) / 2:.2f} ")
    assert modes[ALONE] == ["the other half empty", "-", *["3.33 (3.33 to 3.33)"] * 2]
    assert modes[COMPACT] == ["each beside itself", "1.000", *["2.00 (2.00 to 2.00)"] * 2]
    assert named["walk cells"][0] == ["a", "1.00", "1.40", "1.10", "1.00", "1.20"]
    chosen = gains[COMPACT][0].partition("(")[2].removesuffix(")")
    assert "chosen by itself, 1 neighbour" in modes[chosen][0]
    for name, mode in ((COMPACT, COMPACT), ("worst pairing", "a+d, b+c"), (ALONE, ALONE)):
        for way in (0, 1):
            over, under = (float(modes[one][2 + way].split()[0]) for one in (mode, chosen))
            assert float(gains[name][1 + way].split()[0]) == pytest.approx(over / under, abs=0.01)
    off = truth_of().ratio[~np.eye(4, dtype=bool)]
    for row in named["walk choices"]:  # every cell is hidden by as many choices
        assert row[5:7] == [f"{100 * np.abs(guess / off - 1).mean():.1f} %" for guess in (1, 1.2)]
    assert [len(named["walk hidden"]), [row[1:3] for row in named["walk choices"]]] == [12, [[3, 24], [3, 12]]]


def _fake(ran: list[tuple[str, ...]], fail_at: int = -1) -> Callable[..., None]:
    def run(programs, cores, limit, record):
        if len(ran) == fail_at:
            raise KeyboardInterrupt
        ran.append(tuple(one.name for one in programs))
        for one in programs:
            record(one.name, 1.0)

    return run


def test_an_interrupted_walk_runs_the_turns_that_are_missing(tmp_path, monkeypatch):
    programs = [Program(name, ("true",)) for name in NAMES]
    path, ran = tmp_path / "turns.json", list[tuple[str, ...]]()
    monkeypatch.setattr(walk, "run_segment", _fake(ran, fail_at=17))
    with pytest.raises(KeyboardInterrupt):
        walk.run_turns(programs, [[0], [1]], path, 2)
    monkeypatch.setattr(walk, "run_segment", _fake(ran))
    turns = walk.run_turns(programs, [[0], [1]], path, 2)
    assert ran == [step.programs for step in plan(MODES, 2)]
    assert walk.read_turns(path) == turns
    assert [turn.step for turn in turns] == list(plan(MODES, 2))
    walk.run_turns(programs, [[0], [1]], path, 2)
    assert len(ran) == len(turns)
    path.write_text("[[1]]")
    assert "expecting turns as JSON, got" in refusal(walk.read_turns, path)


def test_programs_exchange_their_cores_in_every_second_round(tmp_path, monkeypatch):
    given_cores = list[object]()
    monkeypatch.setattr(walk, "run_segment", lambda programs, cores, limit, record: given_cores.append(cores))
    walk.run_turns([Program(name, ("true",)) for name in "ab"], [[0], [1]], tmp_path / "turns.json", 2)
    assert given_cores == [[[0], [1]]] * 5 + [[[1], [0]]] * 5


def test_results_that_are_there_fill_the_page_and_draw_the_heat_map(tmp_path, capsys):
    results, lab = tmp_path / "results", tmp_path / "docs" / "lab"
    for folder in (results, lab, tmp_path / "docs" / "figures"):
        folder.mkdir(parents=True)
    write_speedups(results / walk.HEAT, truth_of())
    turns = turns_of(seconds_of, 7)
    (results / walk.TURNS).write_text(json.dumps(turns))
    assert walk.read_turns(results / walk.TURNS) == turns
    page = lab / walk.PAGE
    page.write_text("".join(f"<!-- {name} -->\n<!-- end of {name} -->\n" for name, _, _ in tables(truth_of(), turns)))
    assert walk.main(["--show", "--results", str(results), "-o", str(lab)]) == 0
    printed = capsys.readouterr().out
    for name, head, rows in tables(truth_of(), turns):
        assert f"\n{name}\n| {' | '.join(head)} |" in printed
        for row in rows:
            assert f"| {' | '.join(map(str, row))} |" in page.read_text()
    assert "(empty)" in (tmp_path / "docs" / "figures" / walk.FIGURE).read_text()


def test_a_folder_without_results_is_one_line(tmp_path, capsys):
    assert walk.main(["--show", "--results", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("studies coscheduling2025 walk: ")
    assert told.count("\n") == 1
    write_speedups(tmp_path / walk.HEAT, truth_of())
    assert walk.main(["--show", "--results", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert told == "studies coscheduling2025 walk: turns of a, b, c, d: expecting a complete round, got none\n"


@pytest.mark.parametrize("quick", [False, True])
def test_the_commands_name_files_that_are_there_and_quick_ones_have_fewer_steps(quick):
    words = walk.commands(quick, Path("/k"))
    assert [word.partition("=")[0] for word in words] == list(walk.PROGRAMS)
    for word, (_, long, short) in zip(words, walk.PROGRAMS.values(), strict=True):
        line = word.partition("=")[2].split()
        assert all(Path(one).is_relative_to(ROOT) and Path(one).exists() for one in line if one.endswith(".py"))
        assert (short if quick else long) in line
