"""Measured collectives of four machines: the reader, the networks, the fit, and the score."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.pico.algorithms import described
from studies.pico.bine import bine, through_ports
from studies.pico.data import Row, cells_of, kept, read_rows
from studies.pico.fitting import Weights, fit
from studies.pico.machines import MACHINES, allocations, network_on
from studies.pico.score import by_rule, contests, correlation, oracle, regrets, summary
from studies.pico.times import NAMES, START, Times
from studies.pico.torus import torus_network
from tests.support import examples, shared_data
from topompi.schedules.analysis.loads import messages_of
from topompi.topology import TopologyInterface
from topompi.topology.computed import compute_routes
from topompi.topology.synthetic import torus
from topompi.views.network import network_of

ROW = Row("leonardo", "run", 4, "host", "allreduce", "ring_ompi", "ring", "ompi", 0, 1, 1 << 20, 1 << 20, 1.0)
TABLE = """system,run_id,tests,ranks,nodes,tasks_per_node,grid,source,hosts,group,switch,rack,position
leonardo,run,0,4,3,1-2,,recorded,a*2 b c,1 1 2,10 11 20,,
lumi,other,0,2,2,1,,recorded,n1 n2,7 7,,,c0s1b0n0 c0s2b0n0
mare_nostrum,third,0,2,2,1,,recorded,x y,1 2,,01r1 02r1,b1 b2
fugaku,torus,0,64,64,1,4x4x4,requested,rank0 of test0:?,,,,
"""


def rows_of(times: dict[str, float], nbytes: int = 1 << 20) -> list[Row]:
    """A row for each common name of an algorithm, with its seconds."""
    return [replace(ROW, algorithm=name, norm=name, nbytes=nbytes, seconds=time) for name, time in times.items()]


def test_allocations_become_networks_with_the_distances_of_each_machine(tmp_path) -> None:
    path = tmp_path / "places.csv"
    path.write_text(TABLE)
    found = allocations(str(path))
    cells = network_on(found["run", 4])
    assert cells.rank_host.tolist() == [0, 0, 1, 2]
    assert cells.hops.tolist() == [[0, 3, 4], [3, 0, 4], [4, 4, 0]]
    assert network_on(found["other", 2]).hops.max() == 1  # hosts of a chassis share a switch
    assert network_on(found["other", 2], replace(MACHINES["lumi"], near="host")).hops.max() == 3
    assert network_on(found["third", 2]).hops.max() == 5
    torus = network_on(found["torus", 64])
    assert torus.hops.max() == 2 + 2 + 2 + 1
    first = torus.links[0, 1]
    assert torus.capacity[first[first >= 0]].tolist() == [MACHINES["fugaku"].adapter, 6.8e9, MACHINES["fugaku"].adapter]


@pytest.mark.parametrize("dims", [(4, 4, 4), (3, 8), (5, 2, 2)])
def test_routes_on_a_large_torus_are_as_long_as_those_of_a_fabric_and_join_their_hosts(dims: tuple[int, ...]) -> None:
    fabric = torus(dims)
    usual = network_of(TopologyInterface.place(fabric.hosts, compute_routes(fabric)))
    made = torus_network(dims, 1.0, 2.0)
    assert np.array_equal(made.hops, usual.hops)
    hosts = made.num_hosts
    source, destination = (one.ravel() for one in np.indices((hosts, hosts)))
    paths = made.routes(source, destination)
    assert np.array_equal((paths >= 0).sum(axis=1), np.where(usual.hops > 0, usual.hops + 1, 0).ravel())
    axis, down = paths[:, 1:] // 2 % len(dims), paths[:, 1:] % 2
    moved = np.zeros((len(paths), len(dims)), dtype=int)
    inner = (paths[:, 1:] >= 0) & (paths[:, 1:] < 2 * len(dims) * hosts)
    np.add.at(moved, (np.nonzero(inner)[0], axis[inner]), 1 - 2 * down[inner])
    assert np.array_equal((made.grid[source] + moved) % dims, made.grid[destination])
    last = np.take_along_axis(paths, (paths >= 0).sum(axis=1)[:, None] - 1, axis=1).ravel()
    apart = source != destination
    assert np.array_equal(last[apart], (2 * len(dims) + 1) * hosts + destination[apart])


def test_the_regret_of_choices_is_their_time_over_the_least() -> None:
    cells = cells_of(
        [
            *rows_of({"ring": 2.0, "rabenseifner": 1.0, "recursive_doubling": 4.0, "library_default": 0.5}),
            *rows_of({"ring": 1.04, "rabenseifner": 1.0, "recursive_doubling": 3.0}, 9 << 20),
        ]
    )
    predicted = {"ring": 1.0, "rabenseifner": 2.0, "recursive_doubling": 3.0}
    some = contests(cells, lambda rows: np.array([predicted[row.norm] for row in rows]))
    assert regrets([one.chosen for one in some], [one.best for one in some]).tolist() == [2.0, 1.0]
    assert summary(np.array([2.0, 1.0, np.nan])).mean == pytest.approx(2**0.5)
    assert some[0].cell.best == some[0].cell.default == 0.5
    assert [correlation(one) for one in some] == pytest.approx([0.5, 0.5])
    assert by_rule(some[:1], some[:1]) == oracle(some)[:1] == [1.0]
    assert np.isnan(by_rule(some[:1], some[1:])).all()  # no call of that class of sizes was seen


@examples(9)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_fit_recovers_the_parameters_of_synthetic_cells(seed: int) -> None:
    draw = np.random.default_rng(seed)
    true = np.array(START.values) * np.exp(draw.uniform(-1, 1, len(NAMES)))
    names = ("ring", "rabenseifner", "recursive_doubling")
    rows = [row for size in range(40) for row in rows_of(dict.fromkeys(names, 1.0), 1024 + size)]
    terms = draw.lognormal(0, 1.5, (len(rows), len(NAMES))) / np.array(START.values)
    measured = [replace(row, seconds=time) for row, time in zip(rows, (terms @ true).tolist(), strict=True)]
    found = fit(measured, terms, Weights(level=1.0, prior=1e-5))
    assert np.allclose(np.array(found.values) / true, 1, atol=0.02)


def test_derivatives_and_parameters_give_the_predicted_time(tmp_path) -> None:
    path = tmp_path / "places.csv"
    path.write_text(TABLE)
    times, rows = Times(allocations(str(path))), rows_of({"ring": 1.0, "rabenseifner": 1.0, "recursive_doubling": 1.0})
    start = {"leonardo": START}
    summed = times.terms(rows, start) @ np.array(START.values)
    assert summed == pytest.approx(times.seconds(rows, start), rel=1e-3)
    doubled = {"leonardo": replace(START, values=tuple(2 * value for value in START.values))}
    assert times.seconds(rows, doubled) == pytest.approx(2 * times.seconds(rows, start))


@pytest.mark.parametrize("grid", [(8,), (4, 4), (2, 2, 2)])
@pytest.mark.parametrize("ports", [1, 3])
def test_bine_moves_as_many_blocks_as_its_collectives_need(grid: tuple[int, ...], ports: int) -> None:
    ranks = np.arange(np.prod(grid)).reshape(grid)
    size = ranks.size
    sent = {}
    for collective in ("allgather", "reduce_scatter", "gather", "scatter", "bcast", "reduce", "allreduce"):
        made = bine(collective, ranks, ports=ports)
        sent[collective] = messages_of(made).blocks.sum() / made.blocks
    steps = size.bit_length() - 1
    assert sent["allgather"] == sent["reduce_scatter"] == size * (size - 1)
    assert sent["gather"] == sent["scatter"] == size / 2 * steps  # a tree of which each block climbs its depth
    assert sent["allreduce"] == 2 * (size - 1)
    assert sent["bcast"] == sent["reduce"] == (size - 1) + steps / 2
    assert messages_of(bine("bcast", ranks, form="whole")).blocks.tolist() == [1] * (size - 1)
    views = [through_ports(ranks, port).ravel().tolist() for port in range(2 * len(grid))]
    assert all(view[0] == 0 and sorted(view) == list(range(size)) for view in views)


def test_composed_and_vendor_algorithms_have_no_schedule() -> None:
    for norm in ("library_default", "", "sparbit", "reduce_bcast"):
        assert described(replace(ROW, norm=norm)) is None
    assert described(replace(ROW, algorithm="allgather_reduce_ompi", norm="rabenseifner")) is None


def test_real_cells_are_read_and_their_times_predicted_in_order() -> None:
    rows, reasons = kept(read_rows(shared_data("pico/open.csv.xz")))
    dropped = {"custom_library": 52, "result_not_validated": 42, "selection_ineffective": 36, "default_opt_off": 9}
    assert (len(rows), reasons) == (3966, Counter(dropped | {"buffers in the memory of GPUs": 283}))
    places = allocations(str(shared_data("pico/allocations.csv.xz")))
    assert all((row.run, row.ranks) in places for row in rows)
    small = [row for row in rows if row.run == "2025_04_10___20_36_45" and described(row)]
    found = Times(places).seconds(small, {"mare_nostrum": START})
    assert np.corrcoef(np.log(found), np.log([row.seconds for row in small]))[0, 1] > 0.8
