"""``topompi export``: its files, read back by our readers."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, examples
from tests.tuning.test_tune import FAST, SLOW, measured, record
from topompi.errors import FabricError
from topompi.mapping import place
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.prediction.librarychoices import LibraryChoice
from topompi.mpi.tuning.ompi_rules import NUMBERS, of_choices, of_records, write_classic, write_json
from topompi.mpi.tuning.record import RecordError
from topompi.topology import TopologyInterface, load
from topompi.views.coordinates import write_coordinates

EVEN = tuple(np.linspace(1.9, 2.1, 10))


def topompi(*args, **variables):
    return command_line("export", *args, **variables)


def placed(source, ppn, policy):
    routes = load(source).routes
    names = list(routes.fabric.hosts)
    return TopologyInterface.place(place(ppn * len(names), names, policy), routes, source=source)


# --- MPICH coordinates ---------------------------------------------------------------------------------------------

fabrics = st.sampled_from(["xgft:3,2;1,1", "xgft:2,2,2;1,2,2", "xgft:2,3,3;1,1,2", "dragonfly:2,2,1", "xgft:4;1"])


@examples(30)
@given(fabrics, st.integers(1, 3), st.sampled_from(["block", "cyclic", "random:3"]))
def test_who_shares_a_host_a_switch_and_a_group_survives_the_file(source, ppn, policy):
    interface = placed(source, ppn, policy)
    text = write_coordinates(interface)
    seats = [[int(number) for number in line.split(":")[1].split()] for line in text.splitlines()[1:]]
    assert len(seats) == interface.num_ranks
    group, switch, port = np.array(seats).T
    host, leaf = interface.rank_host, interface.host_routes.leaf[interface.rank_host]
    same_switch = switch[:, None] == switch
    assert ((leaf[:, None] == leaf) == same_switch).all()
    assert ((host[:, None] == host) == (same_switch & (port[:, None] == port))).all()
    assert (~same_switch | (group[:, None] == group)).all()  # a switch is in one group
    if source.startswith("xgft"):  # in a dragonfly a neighbour in another group may be nearer than one in one's own
        hops = interface.hop_matrix[np.ix_(host, host)]
        apart = hops[group[:, None] != group]
        assert apart.min(initial=99) >= hops[group[:, None] == group].max()


def test_our_own_reader_finds_the_distances_again(tmp_path):
    interface = placed("xgft:2,2,2;1,2,2", 2, "cyclic")
    path = tmp_path / "coords"
    path.write_text(write_coordinates(interface))
    discovery = load(str(path))
    again = TopologyInterface.place(discovery.rank_hosts, discovery.routes)
    nearer = interface.hop_matrix[np.ix_(interface.rank_host, interface.rank_host)]
    found = again.hop_matrix[np.ix_(again.rank_host, again.rank_host)]
    pairs = set(zip(nearer.ravel().tolist(), found.ravel().tolist(), strict=True))
    assert pairs == {(0, 0), (1, 1), (3, 3), (5, 4)}  # groups are joined pairwise there: one switch less


def test_hosts_without_a_topology_have_no_coordinates():
    with pytest.raises(FabricError, match="expecting a topology with switches"):
        write_coordinates(TopologyInterface.place(["a", "b"]))


def test_the_command_writes_coordinates(tmp_path):
    path = tmp_path / "coords"
    hosts = ("--hosts", "h[0000-0002]", "--ppn", "2", "--place", "cyclic")
    done = topompi("mpich-coordinates", "--topology", "xgft:2,2;1,1", *hosts, "-o", path)
    assert done.returncode == 0, done.stderr
    seats = ["0: 0 0 0", "1: 0 0 1", "2: 0 1 0"]
    assert path.read_text().splitlines()[1:] == [*seats, "3: 0 0 0", "4: 0 0 1", "5: 0 1 0"]
    wrong = topompi("mpich-coordinates", "xgft:2,2;1,1", "--place", "somehow", "-o", path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "expecting block, cyclic or random:SEED" in wrong.stderr


# --- Open MPI rules ------------------------------------------------------------------------------------------------


def forced(algorithm, *results, ranks=4, method="alltoall"):
    what = {} if algorithm == 0 else {method: str(algorithm)}
    return record([row for rows in results for row in rows], forced=what, ranks=ranks, name=f"{algorithm}.json")


def written(records):
    return write_classic(of_records(records), [])


def looked_up(text, collective, ranks, nbytes):
    """The algorithm that Open MPI finds in a file: of the last section and the last line that are not larger."""
    numbers = iter([int(word) for line in text.splitlines() for word in line.partition("#")[0].split()])
    found = None
    for _ in range(next(numbers)):
        number = next(numbers)
        for _ in range(next(numbers)):
            section = next(numbers)
            for place_ in range(next(numbers)):
                size, algorithm, *rest = (next(numbers) for _ in range(4))
                assert rest[0] == 0
                assert place_ or size == 0
                if number == collective and section <= ranks and size <= nbytes:
                    found = algorithm
    assert next(numbers, None) is None
    return found


RECORDS = (
    forced(0, measured("Alltoall", 1024, native=EVEN), measured("Alltoall", 2048, native=EVEN)),
    forced(2, measured("Alltoall", 1024, native=FAST), measured("Alltoall", 2048, native=SLOW)),
    forced(4, measured("Alltoall", 1024, native=SLOW), measured("Alltoall", 2048, native=EVEN)),
)


def test_a_forced_algorithm_has_a_rule_where_it_was_clearly_faster():
    text = written(RECORDS)
    for nbytes, algorithm in ((0, 0), (4095, 0), (4096, 2), (8191, 2), (8192, 0), (10**9, 0)):
        assert looked_up(text, 3, 4, nbytes) == algorithm, nbytes
    assert {looked_up(text, 3, ranks, 4096) for ranks in (1, 2, 3, 5, 100)} == {0}
    assert looked_up(text, 7, 4, 4096) is None


def test_each_number_of_ranks_has_its_own_rules():
    more = [
        forced(0, measured("Alltoall", 1024, native=EVEN), ranks=5),
        forced(4, measured("Alltoall", 1024, native=FAST), ranks=5),
    ]
    text = written([*RECORDS, *more])
    found = [looked_up(text, 3, ranks, 1024 * ranks) for ranks in (3, 4, 5, 6)]
    assert found == [0, 2, 4, 0]


def test_a_gain_within_the_spread_makes_no_rule():
    wide = tuple(np.linspace(1, 3, 10))
    records = [
        forced(0, measured("Bcast", 64, native=wide)),
        forced(6, measured("Bcast", 64, native=tuple(0.8 * time for time in wide)), method="bcast"),
    ]
    assert looked_up(written(records), 7, 4, 64) == 0


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "expecting records, got none"),
        (RECORDS[:1], "expecting records in which some method has its algorithm forced"),
        (RECORDS[1:], "expecting all sizes of Alltoall in a record in which nothing is forced"),
        ([record([], library="MPICH 5.0.0")], "expecting a record of Open MPI, got one of MPICH"),
        ([RECORDS[0], record([], ranks=4, nodes=("other",) * 8)], "expecting the same nodes"),
        ([RECORDS[0], record([], ranks=4, library="Open MPI 4.1.0")], "expecting the same library"),
        (
            [RECORDS[0], forced("pairwise", measured("Alltoall", 8, native=FAST))],
            "expecting a number as coll_tuned_",
        ),
    ],
)
def test_records_that_do_not_go_together_are_refused(records, words):
    with pytest.raises(RecordError, match=words):
        written(records)


def in_json(text, method, ranks, nbytes):
    """The first rule of the file that fits, as Open MPI 6 looks rules up; 0 for none."""
    for one in json.loads(text)["collectives"].get(method, []):
        if one["comm_size_min"] <= ranks <= one["comm_size_max"]:
            for rule in one["rules"]:
                if rule["msg_size_min"] <= nbytes and (rule["msg_size_max"] == "inf" or nbytes <= rule["msg_size_max"]):
                    return rule["alg"], rule.get("seg_size", 0)
    return 0, 0


@given(
    numbers=st.lists(st.sampled_from([(0, 0), (1, 0), (3, 0), (3, 8192), (6, 0)]), min_size=1, max_size=6),
    ranks=st.integers(2, 40),
)
@examples(60)
def test_both_formats_have_the_predicted_choice_of_each_size(numbers, ranks):
    sizes = [4**power for power in range(1, len(numbers) + 1)]
    chosen = [
        LibraryChoice(method, nbytes, number, segment, "", 1.0, 1.0)
        for method in ("Bcast", "Allgather")
        for nbytes, (number, segment) in zip(sizes, numbers, strict=True)
    ]
    rules = of_choices(chosen, ranks)
    assert bool(rules) == any(number for number, _ in numbers)
    classic, other = write_classic(rules, ["made up"]), write_json(rules)
    for nbytes, wanted in zip((*sizes, 2 * sizes[-1]), (*numbers, (0, 0)), strict=True):
        for number, method, times in ((7, "bcast", 1), (0, "allgather", ranks)):
            for size in {nbytes * times, 2 * nbytes * times - 1}:
                assert in_json(other, method, ranks, size) == wanted
                assert (looked_up(classic, number, ranks, size) or 0) == wanted[0]
            assert in_json(other, method, ranks + 1, nbytes * times) == (0, 0)
            assert not looked_up(classic, number, ranks - 1, nbytes * times)


def test_the_command_writes_predicted_rules_and_says_what_to_expect():
    done = topompi("ompi-rules", "--topology", "xgft:4,2;1,2", "--ppn", "2", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert "predicted times as fast as without this file: Bcast" in done.stderr
    assert "--mca coll_han_bcast_dynamic_global_communicator_module tuned" in done.stderr
    assert looked_up(done.stdout, 7, 16, 1 << 22) == 3
    for words, wrong in (
        ((), "expecting records or --topology, got neither"),
        (("--topology", "xgft:4;1"), "expecting"),
    ):
        done = topompi("ompi-rules", *words, "-o", "-", *(("--hosts", "h0000") if wrong == "expecting" else ()))
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert wrong in done.stderr


def test_predicted_rules_follow_the_parameters_of_the_machine(tmp_path):
    """With a costly start of each message a broadcast in segments does not pay."""
    (tmp_path / "slow.json").write_text(
        json.dumps({"levels": {"0": {"t_s": 1, "t_w": 0}, "1": {"t_s": 1, "t_w": 1e-9}}})
    )
    words = ("ompi-rules", "--topology", "xgft:4,2;1,2", "--ppn", "2", "-o", "-")
    done = topompi(*words, TOPOMPI_MACHINE=str(tmp_path / "slow.json"))
    assert done.returncode == 0, done.stderr
    assert looked_up(done.stdout, 7, 16, 1 << 22) != 3
    wrong = topompi(*words, TOPOMPI_MACHINE="nowhere")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert "TOPOMPI_MACHINE: expecting one of" in wrong.stderr


def test_methods_of_the_rules_are_methods():
    assert NUMBERS.keys() <= CALLS.keys()


def test_the_command_writes_rules(tmp_path):
    paths = [tmp_path / one.name for one in RECORDS]
    for path, one in zip(paths, RECORDS, strict=True):
        path.write_text(one.to_json())
    done = topompi("ompi-rules", *paths, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert looked_up(done.stdout, 3, 4, 4096) == 2
    wrong = topompi("ompi-rules", paths[1], "-o", "-")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
