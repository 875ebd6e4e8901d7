"""Files of fitted parameters of the cost model, and the setting that names one."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.support import refusal
from topompi.errors import SettingError
from topompi.mpi.prediction.machines import FOLDER, machine_from, machine_model, machines
from topompi.schedules import make
from topompi.schedules.analysis import loads
from topompi.schedules.analysis.cost import cost
from topompi.schedules.analysis.model import Model, ModelError
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of

costs = sys.modules["topompi.schedules.analysis.cost"]  # the package has a function of this name


def test_every_machine_has_a_model_and_the_origin_of_each_parameter() -> None:
    assert {"fugaku", "leonardo", "lumi", "mare_nostrum"} <= set(machines())
    for name in machines():
        model, data = machine_model(name), json.loads((FOLDER / f"{name}.json").read_text())
        assert model == machine_from({"TOPOMPI_MACHINE": name}) == Model.from_measured(model.as_dict())
        assert model.t_o
        assert model.t_r
        assert model.t_s[0] < model.t_s[-1]
        assert data["origin"].keys() == data["parameters"].keys()


def test_a_machine_of_ones_own_is_a_file_and_others_are_refused_in_one_line(tmp_path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"levels": {"1": {"t_s": 1e-6, "t_w": 1e-9}}, "t_o": 1e-7, "t_r": 2e-9}')
    assert machine_from({"TOPOMPI_MACHINE": str(path)}) == Model((1,), (1e-6,), (1e-9,), 1e-7, t_r=2e-9)
    assert machine_from({}) is None
    told = refusal(machine_from, {"TOPOMPI_MACHINE": "marenostrum"}, error=SettingError)
    assert told.startswith("TOPOMPI_MACHINE: expecting one of fugaku, ")
    assert told.endswith("got 'marenostrum'")
    for text in ('{"levels": {}}', '{"levels": {"1": {"t_s": 1e-6, "t_w": 1e-9}}, "t_r": -1}', "[]", "{"):
        path.write_text(text)
        assert "\n" not in refusal(machine_model, str(path), error=ModelError)
    assert "\n" not in refusal(machine_model, str(tmp_path / "none"), error=ModelError)


def test_a_reduction_takes_longer_by_the_bytes_that_a_rank_combines() -> None:
    routes = load_routes("xgft:4;1")
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    bare, slow = (Model((1,), (1e-6,), (1e-9,), t_r=t_r) for t_r in (0.0, 3e-9))
    for name, vectors in (("doubling", 2.0), ("ring", 3 / 4), ("halving", 3 / 4)):
        made = make("allreduce", name, network)
        times = [cost(made, network, model, 4_000_000 // made.blocks).seconds for model in (bare, slow)]
        assert times[1] - times[0] == pytest.approx(vectors * 4_000_000 * 3e-9)
    gathered = make("allgather", "ring", network)
    assert np.diff([cost(gathered, network, model, 1000).seconds for model in (bare, slow)]) == 0


@pytest.mark.parametrize(
    ("collective", "name"), [("allreduce", "halving"), ("allgather", "ring"), ("gather", "linear")]
)
def test_routes_that_are_followed_as_needed_give_the_same_time(monkeypatch, collective: str, name: str) -> None:
    routes = load_routes("torus:3x4")
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    capacity, first = network.capacity.copy(), network.links[:, :, 0]
    capacity[np.unique(first[first >= 0])] *= 2  # the links of hosts, by which all others are measured
    network = replace(network, capacity=capacity)
    made, model = make(collective, name, network), machine_model("fugaku")
    usual = cost(made, network, model, 1000).seconds
    for module in (costs, loads):
        monkeypatch.setattr(module, "MOST_HOSTS", 2)
    assert cost(made, network, model, 1000).seconds == usual
