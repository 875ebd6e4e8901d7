"""Jokanovic's studies of jobs that share links, in small: her applications, mixes and lanes."""

from __future__ import annotations

import numpy as np
import pytest

from studies.jokanovic import applications, lanes
from studies.jokanovic.applications import BASE, CLASSES, RATE, application, character
from studies.jokanovic.sharing import outcomes
from topompi.machine.interference import crossbar


@pytest.mark.parametrize("name", ["CG", "WRF", "GROMACS", "CGPOP"])
def test_an_application_takes_the_sources_time_on_a_crossbar_and_has_its_class(name):
    assert crossbar.seconds(application(name), RATE) == pytest.approx(BASE[name], rel=1e-6)
    assert character(application(name), BASE[name], 2, "F2").name == CLASSES[name]


def test_the_messages_of_bt_are_the_benchmarks():
    made = applications.bt(16, (780_300, 156_060, 26_010), 0.0, 1)
    sizes, counts = np.unique(made.messages.nbytes, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {780_300: 96, 156_060: 144, 26_010: 144}


def test_eight_cg_lose_less_the_fewer_share_a_leaf_and_nothing_on_leaves_of_their_own():
    lost = [float(outcomes(["CG"] * 8, 8, how, 1)[0].inter.mean()) for how in ("RF:1", "F4", "F8", "F16")]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] == 0.0


def test_lanes_divide_the_whole_buffer_and_every_job_has_one():
    for how in (*lanes.ONE.values(), *lanes.APART.values()):
        settings = how.settings()
        assert settings.room * settings.lanes == lanes.TOTAL
        assert max(how.lane) < settings.lanes


def test_two_jobs_on_one_lane_lose_time_to_each_other():
    names = ("FT", "BT")
    assert lanes.total(names, lanes.ONE[2], 0.125).min() > 0
