"""Messages about a virtual placement: native runs, and the model's choice for the network is reported."""

import json

import pytest
from mpi4py import MPI
from typer.testing import CliRunner

from topompi.cli.run.why import VIRTUAL_HOSTS
from topompi.cli.run.why import why as command
from topompi.dispatch.common import Common
from topompi.dispatch.parts import Parts
from topompi.dispatch.reasons import why_ran
from topompi.mapping import place
from topompi.prediction.libraries import model_of
from topompi.prediction.predictor import Predictor
from topompi.prediction.scope import unmodelled
from topompi.prediction.untuned import predict
from topompi.selection.choice import Choice
from topompi.selection.policy import Policy
from topompi.topology import TopologyInterface, load

SOURCE = "xgft:4,4;1,1@rate=1xSDR"  # 16 hosts on slow links, where the model leaves native
NBYTES = 256 << 10


def interface(virtual):
    routes = load(SOURCE).routes
    return TopologyInterface.place(place(16, routes.fabric.hosts, "random:1"), routes, virtual=virtual)


@pytest.mark.parametrize("virtual", [True, False])
def test_native_on_a_virtual_placement_has_the_model_s_choice_for_the_network_beside_it(virtual):
    """State and selector of one rank, on a topology of 16: nothing of this communicates."""
    state = Parts(MPI.Intracomm(MPI.COMM_SELF), Common(interface(virtual), Policy()))
    predictor = Predictor(interface(False), model_of(MPI.Get_library_version()))
    real = predict(predictor, "Alltoall", NBYTES + NBYTES // 2, 0, lambda name: name not in ("paced", "joint"))
    assert real.algorithm != "native"
    because = f"native: {unmodelled(interface(True))}"
    said = why_ran(state, "Alltoall", Choice("native", because), "native", NBYTES, None, None)
    added = f"; on the real network {real.algorithm} would run: {real.reason}" if virtual else ""
    assert said == because + added
    assert why_ran(state, "Alltoall", Choice("native", "rule 1"), "native", NBYTES, None, None) == "rule 1"
    state.free()


def ask(*options, call="alltoall", code=0):
    from typer import Typer

    app = Typer()
    app.command()(command)
    asked = [call, "256K", "--place", "random:1", *options]
    done = CliRunner().invoke(app, asked, env={"TOPOMPI_TOPOLOGY": SOURCE})
    assert done.exit_code == code, done.output
    return done.output or str(done.exception)


def test_why_says_both_where_the_environment_places_ranks_virtually(monkeypatch):
    monkeypatch.delenv(VIRTUAL_HOSTS, raising=False)
    real = ask()
    assert VIRTUAL_HOSTS not in real
    monkeypatch.setenv(VIRTUAL_HOSTS, "h[0000-0015]")
    both = ask()
    assert both.startswith(real)
    because = "a virtual placement, whose links are not those that the ranks run on"
    assert both[len(real) :] == f"native runs under {VIRTUAL_HOSTS}: {because}\n"
    facts = json.loads(ask("--json"))
    assert (facts["virtual"]["algorithm"], facts["algorithm"] != "native") == ("native", True)


def test_why_answers_for_calls_with_counts_where_ranks_agree_on_a_size():
    assert ask(call="Alltoallv").startswith("Alltoallv of 262,144 bytes: 16 ranks")
    assert "native runs by itself" in ask(call="gatherv", code=1)
    assert "alltoallw, got 'gathervv'" in ask(call="gathervv", code=1)
