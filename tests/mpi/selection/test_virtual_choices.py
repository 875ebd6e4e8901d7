"""Messages about a virtual placement: native runs, and the model's choice for the network is reported."""

import pytest
from mpi4py import MPI

from tests.selection.test_virtual_choices import SOURCE
from topompi.mapping import place
from topompi.mpi.dispatch.common import Common
from topompi.mpi.dispatch.parts import Parts
from topompi.mpi.dispatch.reasons import why_ran
from topompi.mpi.prediction.libraries import model_of
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.scope import unmodelled
from topompi.mpi.prediction.untuned import predict
from topompi.mpi.selection.choice import Choice
from topompi.mpi.selection.policy import Policy
from topompi.topology import TopologyInterface, load

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
