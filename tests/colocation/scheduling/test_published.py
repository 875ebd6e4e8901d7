"""Improvements of the makespan beside those that the source prints, and the shape of its other experiments."""

from __future__ import annotations

from tests.support import shared_data


def test_improvements_by_marconis_matrix_are_within_four_points_and_grow_with_the_mean_speed_up() -> None:
    shared_data("colocation/marconi-speedups.csv")
    from studies.coscheduling2025.schedule import PUBLISHED, mean_speedups

    found = [float(row[3].split()[0]) for row in mean_speedups(4)]
    assert [round(one, 1) for one in found] == [21.3, 24.3, 26.5, 30.8]
    assert all(abs(one - other) < 4 for one, other in zip(found, PUBLISHED.values(), strict=True))


def test_filler_gains_nothing_with_one_size_and_more_than_easy_with_four() -> None:
    shared_data("colocation/aris-nas.csv")
    from studies.coscheduling2025.schedule import diversity

    one, *_, four = ([float(cell.split()[0]) for cell in row[2:]] for row in diversity(1))
    assert one[0] == one[1]
    assert one[0] > four[0]  # EASY Co loses with diversity
    assert four[1] > four[0] + 5
    assert one[2] > one[0]  # matched
    assert four[2] > four[0]
