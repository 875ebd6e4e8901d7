"""Models of MPI libraries: the known libraries, and the facts on which a call's decision depends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_registry import placed
from tests.support import examples
from topompi.mpi.prediction.libraries import CallShape, model_of
from topompi.mpi.prediction.libraries.openmpi import hosts as openmpi_hosts
from topompi.mpi.prediction.libraries.openmpi.fixed import COMMUTATIVE, ORDERED, fixed_decision
from topompi.schedules import check
from topompi.schedules.schedule import ROOTED

OPEN_MPI = "Open MPI v5.0.11, package: Open MPI user@localhost Distribution, ident: 5.0.11\0"
METHODS = [*COMMUTATIVE, "Gatherv", "Scatterv", "Alltoallw", "Scan", "Exscan"]


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (OPEN_MPI, "Open MPI 5.0.11"),
        ("Open MPI v4.1.6, package: x", "Open MPI 4.1.6"),
        ("Open MPI v5.1.0a1, package: x", None),
        ("Open MPI v4.0.3, package: x", None),
        ("MPICH Version:      4.3.2\n", None),
        ("", None),
    ],
)
def test_a_library_is_known_by_what_it_says_of_itself(version, name):
    model = model_of(version, {}) if "MPICH" not in version else None
    assert (model and model.name) == name


@pytest.mark.parametrize(
    "parameter", ["coll", "coll_tuned_use_dynamic_rules", "coll_han_priority", "coll_base_include"]
)
def test_nobody_knows_a_library_whose_decisions_have_been_changed(parameter):
    assert model_of(OPEN_MPI, {f"OMPI_MCA_{parameter}": "1"}) is None


def test_parameters_that_change_no_decision_leave_it_known():
    assert model_of(OPEN_MPI, {"OMPI_MCA_coll_base_verbose": "30", "OMPI_MCA_btl": "self,sm"}) is not None


@examples(120)
@given(
    st.sampled_from(METHODS), st.integers(2, 20), st.integers(0, 1 << 22), st.booleans(), st.sampled_from([1, 4, 8, 16])
)
def test_every_decision_is_a_schedule_that_does_what_mpi_defines(method, ranks, nbytes, commutative, item):
    network = placed("XGFT(1; 24; 1)", range(ranks), [1] * ranks)
    decision = model_of(OPEN_MPI, {}).decide(CallShape(method, nbytes, network.rank_host, commutative, item))
    check(decision.schedule(network))
    assert decision.says.startswith(("tuned: ", "basic: "))


def test_a_call_of_one_rank_and_an_unknown_one_have_no_decision():
    model = model_of(OPEN_MPI, {})
    assert model.decide(CallShape("Bcast", 8, np.zeros(1, dtype=int))) is None
    assert model.decide(CallShape("Barrier", 0, np.zeros(4, dtype=int))) is None


@pytest.mark.parametrize("table", [*COMMUTATIVE.values(), *ORDERED.values()])
def test_thresholds_ascend_from_nothing(table):
    rows = [row.split(":")[-1] for row in table.split("\n") if ":" in row]
    assert all(row.split()[0] == "0" for row in rows)


def test_decisions_change_at_a_threshold_and_with_the_order_of_operands():
    assert [fixed_decision("Allreduce", 8, nbytes) for nbytes in (8191, 8192)] == ["recursive_doubling", "rabenseifner"]
    assert [fixed_decision("Bcast", ranks, 1 << 20) for ranks in (15, 16)] == ["basic_linear", "scatter_allgather"]
    assert fixed_decision("Allreduce", 8, 1 << 20, commutative=False) == "nonoverlapping"


@examples(60)
@given(
    st.sampled_from(METHODS),
    st.lists(st.integers(0, 3), min_size=2, max_size=12),
    st.sampled_from([0, 8, 1000, 65536, 65537, 200_000, 1 << 20]),
    st.booleans(),
    st.integers(0, 11),
)
def test_decisions_over_hosts_are_schedules_that_do_what_mpi_defines(method, hosts, nbytes, commutative, root):
    """However ranks are placed: in order, in turns, or unevenly."""
    rank_host = np.unique(hosts, return_inverse=True)[1]
    network = replace(placed("XGFT(1; 24; 1)", range(len(hosts)), [1] * len(hosts)), rank_host=rank_host)
    decision = model_of(OPEN_MPI, {}).decide(CallShape(method, nbytes, rank_host, commutative, 8))
    rooted = decision.collective in ROOTED
    check(decision.schedule(network, root % len(hosts) if rooted else 0))


def test_several_ranks_on_several_hosts_bring_in_the_component_that_knows_hosts():
    placements = {"one host": [0] * 6, "one rank a host": list(range(6)), "even": [0, 1, 2] * 2, "uneven": [0, 1, 1]}
    for version, component in ((OPEN_MPI, "han"), ("Open MPI v4.1.6, package: x", "tuned")):
        says = {
            name: model_of(version, {}).decide(CallShape("Bcast", 8, np.array(hosts))).says.partition(":")[0]
            for name, hosts in placements.items()
        }
        assert says == {**dict.fromkeys(placements, "tuned"), "even": component}


@pytest.mark.parametrize("method", ["Bcast", "Reduce", "Allreduce"])
def test_what_all_hosts_do_in_a_segment_is_made_at_once(method, monkeypatch):
    """However many hosts there are, or a choice in a large job takes seconds."""

    def tables(hosts):
        made = []
        inside = openmpi_hosts.inside
        with monkeypatch.context() as patch:
            patch.setattr(openmpi_hosts, "inside", lambda *given: made.append(given) or inside(*given))
            network = placed("XGFT(1; 24; 1)", range(hosts), [2] * hosts)
            check(model_of(OPEN_MPI, {}).decide(CallShape(method, 1 << 18, network.rank_host)).schedule(network))
        return len(made)

    assert 4 <= tables(24) <= tables(6)
