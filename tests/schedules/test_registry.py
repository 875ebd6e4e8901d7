"""The registry of algorithms: its entries are true of the schedules; and users' functions and files in it."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import jobs, routes, scattered_job, slowed
from tests.support import ROOT, command_line, examples
from tests.tuning.test_tune import FAST, measured, record
from topompi.mpi.execution.eligibility import why_not
from topompi.mpi.execution.specs import CALLS, NO_NEEDS, Needs, calls_of
from topompi.mpi.selection.advisor import Advisor
from topompi.mpi.selection.memory import VerdictFile
from topompi.mpi.selection.rules import Rules, RulesError
from topompi.mpi.selection.trial import Verdict
from topompi.schedules import ALGORITHMS, Algorithm, Schedule, ScheduleError, check, find_algorithm, make, register
from topompi.schedules.alltoall.colouring import colouring
from topompi.schedules.alltoall.direct import alltoall_shift
from topompi.schedules.exports.jsonio import from_json, to_json
from topompi.schedules.network import SiblingGroups
from topompi.schedules.registry import FORMER_NAMES
from topompi.schedules.schedule import COPY, INPUT, OUTPUT, REDUCE, ROOTED, SCRATCH
from topompi.topology import TopologyInterface
from topompi.views.jobshape import JobShape
from topompi.views.network import network_of

ENTRIES = [(collective, name) for collective, some in ALGORITHMS.items() for name in some]
REDUCTIONS = ("reduce", "reduce_scatter", "allreduce")
FABRIC = "XGFT(2; 4,4; 1,2)"


def placed(spec, hosts, ranks):
    """The network of a job whose ranks follow its hosts: every cluster is a range of ranks."""
    names = routes(spec).fabric.hosts
    listed = [names[host] for host, many in zip(hosts, ranks, strict=True) for _ in range(many)]
    return network_of(TopologyInterface.place(listed, routes(spec)))


LEAVES = "XGFT(2; 5,4; 1,4)"
IN_ORDER = [
    placed(LEAVES, (0, 1, 2), (1, 1, 1)),
    placed(LEAVES, (0, 1, 2, 5, 6, 10), (1, 3, 2, 1, 2, 3)),
    placed(LEAVES, (0, 5, 10, 15), (2, 1, 1, 1)),
]
TORUS = placed("torus:2x3@ports=3", range(6), (2,) * 6)
NETWORKS = [*IN_ORDER, placed(LEAVES, (0, 1, 5, 6), (2, 2, 2, 2)), scattered_job(), TORUS]
WITH_SLOW_HOST = slowed(placed(LEAVES, (0, 1, 5, 6), (1, 1, 1, 1)), {2: 0.5})
# A rank on each host, where hosts share links: whole machines and parts of some.
SPARSE = [
    placed("XGFT(2; 6,4; 1,3)", range(20), [1] * 20),
    placed("XGFT(2; 6,4; 1,3)", (1, 2, 4, 6, 7, 9, 11, 14, 15, 18, 20, 22, 23), [1] * 13),
    placed("XGFT(3; 8,4,4; 1,4,4)", range(0, 120, 2), [1] * 60),
]


def messages(schedule):
    """The rows between two ranks, by column."""
    return {name: column[schedule.messages] for name, column in schedule.columns().items()}


def in_order(schedule):
    try:
        check(schedule, commutative=False)
    except ScheduleError:
        return False
    return True


@pytest.mark.parametrize(("collective", "name"), [entry for entry in ENTRIES if entry[0] in REDUCTIONS])
def test_what_keeps_order_is_proved_to_wherever_ranks_are_placed_in_order(collective, name):
    known = ALGORITHMS[collective][name]
    asked = {"ordered": True} if "ordered" in known.parameters else {}
    assert all(in_order(make(collective, name, network, **asked)) for network in IN_ORDER) == known.keeps_order


@pytest.mark.parametrize(("collective", "name"), [entry for entry in ENTRIES if entry[0] in REDUCTIONS])
def test_what_applies_an_operation_to_whole_vectors_alone_says_so(collective, name):
    """Each of its reductions is one of all blocks of the vector, on any network; of another one some is not."""
    whole = []
    for network in (*NETWORKS, *SPARSE):
        schedule = make(collective, name, network)
        vector = schedule.blocks * (schedule.size if collective == "reduce_scatter" else 1)
        whole.append((schedule.count[schedule.operation == REDUCE] == vector).all())
    assert all(whole) == ALGORITHMS[collective][name].whole
    said = why_not(calls_of(collective)[0], name, Needs(whole=True))
    assert bool(said) != ALGORITHMS[collective][name].whole


def own_block(schedule):
    """Whether every message is one pair's whole block, from its place in the input to its place in the output."""
    row, share = messages(schedule), schedule.share()
    if schedule.collective == "alltoall":
        pair = row["source"], row["destination"]
        block, begin, end = share[pair], (share.cumsum(1) - share)[pair], (share.cumsum(0) - share)[pair]
    elif schedule.collective in ("gather", "scatter"):
        other = row["source" if schedule.collective == "gather" else "destination"]
        block, place = share[other], (share.cumsum() - share)[other]
        begin, end = (0 * place, place) if schedule.collective == "gather" else (place, 0 * place)
    else:
        return False
    wanted = {"count": block, "source_block": begin, "destination_block": end}
    wanted |= {"source_buffer": INPUT, "destination_buffer": OUTPUT, "operation": COPY}
    return all((row[column] == value).all() for column, value in wanted.items())


@pytest.mark.parametrize(("collective", "name"), ENTRIES)
def test_local_counts_do_where_each_message_is_one_pairs_own_block(collective, name):
    made = [make(collective, name, network, blocks=2) for network in NETWORKS]
    assert all(map(own_block, made)) == ALGORITHMS[collective][name].local_counts


def one_share_each(schedule):
    """Whether each message is one rank's share: of a vector that all have, one of as many blocks as there are ranks."""
    sent = messages(schedule)["count"]
    if schedule.collective in ("bcast", "reduce", "allreduce", "scan", "exscan"):
        return schedule.blocks == schedule.size and bool((sent == 1).all())
    return bool((sent == schedule.blocks).all())


def touched_whole(schedule):
    """Whether what a message brought is only ever read as a whole: its parts then never wait for one another."""
    brought = {}
    for _, source, destination, buffer, begin, into, to, count, _ in np.stack(list(schedule.columns().values()), 1):
        for number in range(begin, begin + count):
            assert number >= 0
            if brought.get((source, buffer, number), (begin, count)) != (begin, count):
                return False
        if source != destination:
            brought |= {(destination, into, number): (to, count) for number in range(to, to + count)}
    return True


@pytest.mark.parametrize(("collective", "name"), ENTRIES)
def test_transfers_cut_into_slices_carry_whole_shares_all_the_way(collective, name):
    known = ALGORITHMS[collective][name]
    made = [make(collective, name, network) for network in (*NETWORKS, WITH_SLOW_HOST)]
    assert all(one_share_each(one) for one in made if not mixed(one)) == (known.cut == "slices")
    assert known.cut != "slices" or all(map(touched_whole, made))


def mixed(schedule):
    """Exchanges within groups, of which a share is empty for most pairs."""
    return schedule.counts is not None and not own_block(schedule)


@pytest.mark.parametrize(("collective", "name"), ENTRIES)
def test_what_divides_messages_sends_as_many_blocks_as_asked_for_one_by_one(collective, name):
    made = [make(collective, name, network, blocks=blocks) for network in NETWORKS for blocks in (1, 5, 16)]
    one_by_one = all((messages(one)["count"] == 1).all() for one in made)
    assert ALGORITHMS[collective][name].cut in (("blocks", "segments") if one_by_one else ("segments", "slices", None))


def loads(schedule, network):
    """Messages over each link in each step that has any between hosts, shape (steps, links)."""
    row = messages(schedule)
    hosts = network.rank_host[row["source"]], network.rank_host[row["destination"]]
    table = np.zeros((schedule.num_steps, len(network.capacity)), dtype=int)
    for links in network.links[hosts].T:
        np.add.at(table, (row["step"][links >= 0], links[links >= 0]), 1)
    return table[table.any(axis=1)]


def shares(schedule, network):
    """Whether the busiest link has more than one message a step, and no link ever more than that, rounded up."""
    table = loads(schedule, network)
    mean = table.sum(axis=0).max() / len(table)
    return mean > 1 and table.max() <= np.ceil(mean)


@pytest.mark.parametrize("name", ALGORITHMS["alltoall"])
def test_what_shares_links_gives_the_busiest_its_share_in_every_step(name):
    found = all(shares(make("alltoall", name, network), network) for network in SPARSE)
    assert found == ALGORITHMS["alltoall"][name].shares_links


@pytest.mark.parametrize("name", ALGORITHMS["alltoall"])
def test_what_is_joint_changes_with_what_others_do_at_the_same_time(name):
    network = placed("XGFT(2; 6,4; 1,3)", range(16), [1] * 16)
    groups = tuple(np.flatnonzero(np.arange(16) % 2 == parity) for parity in (0, 1))
    # each exchange alone has all the links, both together have not
    of_groups = [messages(make("alltoall", name, part)) for part in SiblingGroups.each(network, groups)]
    alone = [messages(make("alltoall", name, network.part(ranks))) for ranks in groups]
    changes = any(
        one["step"].tolist() != other["step"].tolist() or one["destination"].tolist() != other["destination"].tolist()
        for one, other in zip(of_groups, alone, strict=True)
    )
    assert changes == ALGORITHMS["alltoall"][name].joint


@pytest.mark.parametrize(("collective", "name"), [entry for entry in ENTRIES if find_algorithm(*entry).stand_in])
def test_what_libraries_run_does_not_look_at_switches(collective, name):
    """With ranks in order a stand-in is the same on any network."""
    for network in IN_ORDER:
        flat = placed("XGFT(1; 24; 1)", range(network.num_ranks), [1] * network.num_ranks)
        assert to_json(make(collective, name, network)) == to_json(make(collective, name, flat))


def test_every_collective_has_stand_ins_for_all_lengths_and_numbers_of_ranks():
    for collective in {spec.collective for spec in CALLS.values() if spec.collective in ALGORITHMS}:
        some = ALGORITHMS[collective].values()
        for length in ("short", "long"):
            assert any(one.stand_in in ("any", length) and not one.power_of_two for one in some), collective


@pytest.mark.parametrize("name", ALGORITHMS["alltoall"])
def test_what_wants_a_power_of_two_has_idle_ranks_otherwise(name):
    wants = ALGORITHMS["alltoall"][name].power_of_two
    flat = {size: placed("XGFT(1; 24; 1)", range(size), [1] * size) for size in (8, 9)}
    steps = {size: make("alltoall", name, network).num_steps for size, network in flat.items()}
    assert (steps[9] >= 16 and steps[8] <= 8) == wants


# What a user brings


def star(network, root=0, blocks=1):
    """The root sends to all itself."""
    rows = [
        (step, root, rank, INPUT, 0, OUTPUT, 0, blocks, COPY)
        for step, rank in enumerate(rank for rank in range(network.num_ranks) if rank != root)
    ]
    own = [(0, root, root, INPUT, 0, OUTPUT, 0, blocks, COPY)]
    return Schedule.from_rows("bcast", network.num_ranks, "star", own + rows, root=root, blocks=blocks)


@pytest.fixture
def registered():
    register("bcast", "star", Algorithm(star, when="never"))
    yield
    del ALGORITHMS["bcast"]["star"]


@pytest.mark.usefixtures("registered")
@examples(30)
@given(jobs(), st.data())
def test_a_registered_algorithm_is_made_like_all_others(network, data):
    root, blocks = data.draw(st.integers(0, network.num_ranks - 1)), data.draw(st.integers(1, 4))
    made = make("bcast", "star", network, root, blocks)
    assert (made.root, made.blocks) == (root, blocks)
    assert check(made).messages == network.num_ranks - 1


@pytest.mark.usefixtures("registered")
def test_a_registered_algorithm_can_run_as_far_as_its_entry_says():
    assert not why_not("Bcast", "star")
    assert why_not("Bcast", "star/32K")
    assert why_not("Gather", "star")


@pytest.mark.usefixtures("registered")
def test_rules_may_name_a_registered_algorithm():
    head = {"format": "topompi rules", "version": 1}
    of_bcast, of_gather = (
        json.dumps({**head, "rules": [{"collective": collective, "algorithm": "star"}]})
        for collective in ("bcast", "gather")
    )
    assert Rules.parse(of_bcast).rules[0].algorithm == "star"
    with pytest.raises(RulesError, match="got 'star'"):
        Rules.parse(of_gather)


def test_what_refuses_a_job_or_is_out_of_trials_is_no_rival(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def refuses(network):
        raise ValueError("expecting more ranks")

    monkeypatch.setitem(ALGORITHMS["alltoall"], "refuses", Algorithm(refuses))
    monkeypatch.setitem(ALGORITHMS["alltoall"], "untried", Algorithm(colouring, trial=False))
    names = routes(LEAVES).fabric.hosts
    interface = TopologyInterface.place([names[host] for host in (0, 1, 5, 6)], routes(LEAVES))
    advisor = Advisor(JobShape(interface, "Open MPI 5.0.11", "node01"), {"TOPOMPI_TUNE": "measure"})
    rivals = advisor.rivals(("Alltoall", 17, NO_NEEDS), 1 << 17, 0, lambda name: True)
    assert not {"refuses", "untried", "tacs1"} & set(rivals)
    assert "colouring" in rivals


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("collective", "name", "message"),
    [
        ("bcast", "star", "expecting a name that is not taken for bcast, got 'star'"),
        ("bcast", "bound", "expecting a name that is not taken for bcast, got 'bound'"),
        ("bcast", "native", "expecting a name that is not taken for bcast, got 'native'"),
        ("bcast", "my/star", "expecting a name without '/', ',' or blanks, got 'my/star'"),
        ("bcast", "", "expecting a name without '/', ',' or blanks, got ''"),
        ("broadcast", "star", "expecting a collective of bcast, "),
    ],
)
def test_names_that_are_taken_or_no_words_are_refused(collective, name, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        register(collective, name, Algorithm(star))


def test_only_an_algorithm_is_registered():
    with pytest.raises(TypeError, match="expecting an Algorithm, got function"):
        register("bcast", "star", star)


def test_what_an_algorithm_does_not_take_is_refused():
    fixed = Algorithm(lambda network: star(network))
    with pytest.raises(ValueError, match="expecting no root, which this algorithm does not take, got 2"):
        fixed.generate(IN_ORDER[0], root=2)
    with pytest.raises(ValueError, match="expecting no blocks, which this algorithm does not take, got 2"):
        fixed.generate(IN_ORDER[0], blocks=2)


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(
        ValueError, match=r"for allgather of ring, .*, a module:function, or a schedule's file \(.json\)"
    ):
        find_algorithm("allgather", "tree")


# Former names


def test_no_algorithm_has_a_former_name_and_each_stands_for_one():
    names = {name for some in ALGORITHMS.values() for name in some}
    assert not names & set(FORMER_NAMES)
    assert set(FORMER_NAMES.values()) <= names


def test_a_former_name_finds_its_algorithm_and_no_other_collectives():
    assert find_algorithm("alltoall", "bound") is ALGORITHMS["alltoall"]["colouring"]
    assert make("alltoall", "bound", IN_ORDER[1]).algorithm == "colouring"
    with pytest.raises(ValueError, match="got 'bound'"):
        find_algorithm("bcast", "bound")


@pytest.mark.parametrize("cut", ["", "/32K"])
def test_a_rules_file_with_a_former_name_is_read(tmp_path, cut):
    path = tmp_path / "rules.json"
    rules = [{"methods": ["Alltoall"], "algorithm": f"bound{cut}"}]
    path.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": rules}))
    (rule,) = Rules.read(path).rules
    assert rule.algorithm == f"colouring{cut}"
    assert not why_not("Alltoall", rule.algorithm)


def test_a_schedules_file_with_a_former_name_is_read(tmp_path):
    made = make("alltoall", "colouring", IN_ORDER[1])
    old = to_json(made).replace('"colouring"', '"bound"')
    assert old != to_json(made)
    assert to_json(from_json(old)) == to_json(made)
    (tmp_path / "bound").mkdir()
    path = tmp_path / "bound" / "one.json"
    path.write_text(old)
    assert to_json(make("alltoall", str(path), IN_ORDER[1])) == to_json(made)


def test_verdicts_and_tune_records_with_a_former_name_are_read(tmp_path):
    names = routes(LEAVES).fabric.hosts
    memory = VerdictFile(JobShape(TopologyInterface.place(names[:4], routes(LEAVES)), "Open MPI 5.0.11"), tmp_path)
    key = ("Alltoall", 17, NO_NEEDS)
    memory.keep(key, Verdict("bound", 1.5, 0.001, "bound"))
    assert memory.recall(key) == Verdict("colouring", 1.5, 0.001, "colouring")
    old = record(measured("Alltoall", 8, native=FAST, bound=FAST))
    assert [one.algorithm for one in type(old).parse(old.to_json()).results] == ["native", "colouring"]


# Files


@examples(60)
@given(st.sampled_from(ENTRIES), jobs(), st.data())
def test_every_family_comes_back_from_its_file(tmp_path_factory, entry, network, data):
    collective, name = entry
    root = data.draw(st.integers(0, network.num_ranks - 1)) if collective in ROOTED else 0
    made = make(collective, name, network, root)
    path = tmp_path_factory.mktemp("schedules") / "one.json"
    path.write_text(to_json(made))
    assert to_json(make(collective, str(path), network, root)) == to_json(made)


DOCUMENT = to_json(make("alltoall", "shift", IN_ORDER[0]))


@pytest.mark.parametrize(("column", "row", "value"), [("count", -1, 2**31 - 2), ("step", -1, 2**31 - 1)])
def test_numbers_that_no_memory_holds_are_refused_before_the_proof(tmp_path, column, row, value):
    made = make("alltoall", "bruck", IN_ORDER[0])
    table = np.stack(list(made.columns().values()), axis=1)
    table[row, 5], table[row, list(made.columns()).index(column)] = SCRATCH, value
    (tmp_path / "one.json").write_text(to_json(Schedule.from_rows("alltoall", 3, "bruck", table)))
    with pytest.raises(ScheduleError, match=r"expecting at most 67,108,864 (steps|blocks moved), got 2,147,483,"):
        make("alltoall", str(tmp_path / "one.json"), IN_ORDER[0])
    (tmp_path / "one.json").write_text(to_json(made).replace('"blocks":1', '"blocks":2147483647'))
    with pytest.raises(ScheduleError, match=r"expecting at most 67,108,864 blocks of all shares, got 19,327,352,823"):
        make("alltoall", str(tmp_path / "one.json"), IN_ORDER[0])


def test_errors_of_a_file_name_it_and_the_field(tmp_path):
    path = tmp_path / "one.json"
    for content, message in (
        (DOCUMENT.replace('"size":3', '"size":"3"'), 'size: expecting an integer, got "3"'),
        (DOCUMENT.replace('"schedule":1', '"schedule":7'), "schedule: expecting version 1, got 7"),
        (to_json(make("alltoall", "shift", IN_ORDER[1])), "size: expecting 3, got 12"),
        (to_json(make("allgather", "ring", IN_ORDER[0])), "collective: expecting alltoall, got allgather"),
        (to_json(alltoall_shift(3, counts=np.eye(3, dtype=int))), "counts: expecting those asked for"),
    ):
        path.write_text(content)
        with pytest.raises(ScheduleError) as caught:
            make("alltoall", str(path), IN_ORDER[0])
        assert str(caught.value).startswith(f"{path}: {message}")
    path.write_text("{")
    with pytest.raises(ScheduleError, match=r"one\.json:1: expecting JSON: "):
        make("alltoall", str(path), IN_ORDER[0])
    path.write_bytes(b"\xff")
    with pytest.raises(ScheduleError, match=r"one\.json:1: expecting a schedule in UTF-8"):
        make("alltoall", str(path), IN_ORDER[0])
    path.unlink()
    with pytest.raises(ScheduleError, match="cannot be read: No such file"):
        make("alltoall", str(path), IN_ORDER[0])


def test_root_and_blocks_of_a_file_are_those_asked_for(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(to_json(make("bcast", "chain", IN_ORDER[0], root=2, blocks=4)))
    assert make("bcast", str(path), IN_ORDER[0], root=2).blocks == 4
    with pytest.raises(ScheduleError, match="root: expecting 0, got 2"):
        make("bcast", str(path), IN_ORDER[0])
    with pytest.raises(ScheduleError, match="blocks: expecting 2, got 4"):
        make("bcast", str(path), IN_ORDER[0], root=2, blocks=2)


# The command lines

MODULE = """
import helper  # beside it, in the current directory
from topompi.schedules import Schedule, make

def spread(network, root=0, *, late=0):
    rows = [(0, root, root, 0, 0, 1, 0, 1, 0)]
    others = [rank for rank in range(network.num_ranks) if rank != root]
    rows += [(late + step, root, rank, 0, 0, 1, 0, 1, 0) for step, rank in enumerate(others)]
    return Schedule.from_rows("bcast", network.num_ranks, "spread", rows, root=root)

def short(network, root=0):
    whole = spread(network, root)
    keep = {name: column[:-1] for name, column in whole.columns().items()}
    return Schedule("bcast", whole.size, "short", root=root, **keep)

def raises(network):
    return 1 // 0

def refuses(network):
    raise ValueError("expecting more ranks")

number = 3

def text(network):
    return "schedule"

def shifted(network):
    return make("alltoall", "shift", network)
"""


@pytest.fixture(name="folder")
def functions_folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "helper.py").write_text("")
    return tmp_path


def topompi(folder, *arguments):
    return command_line("schedule", *arguments, "--topology", FABRIC, folder=folder)


def test_a_function_is_compared_like_any_algorithm(folder):
    done = topompi(folder, "bcast", "-a", "mine:spread", "--root", "3", "--set", "late=2", "--json", "--check")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (one,) = found["schedules"]
    assert (one["algorithm"], one["schedule"], one["messages"]) == ("mine:spread", "spread", 15)
    done = topompi(folder, "bcast", "-a", "mine:spread")
    assert "mine:spread" in done.stdout
    assert "wins" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bcast", "-a", "mine:short"], "mine:short: end: output block 0 of rank 15 is never written"),
        (["bcast", "-a", "mine:raises"], "mine:raises: ZeroDivisionError: "),
        (["bcast", "-a", "mine:refuses"], "mine:refuses: expecting more ranks"),
        (["bcast", "-a", "mine:text"], "mine:text: expecting a Schedule, got str"),
        (["bcast", "-a", "mine:shifted"], "mine:shifted: collective: expecting bcast, got alltoall"),
        (["bcast", "-a", "mine:number"], "mine:number: expecting a function 'number' in mine, got none"),
        (["bcast", "-a", "mine:nothing"], "mine:nothing: expecting a function 'nothing' in mine, got none"),
        (
            ["bcast", "-a", "nowhere:f"],
            "nowhere:f: expecting module:function, such as mine:ring",
        ),
        (
            ["bcast", "-a", "mine:spread", "--set", "blocks=2"],
            "expecting no blocks, which this algorithm does not take",
        ),
        (["bcast", "-a", "mine:spread", "--set", "soon=2"], "expecting parameters of mine:spread (late), got 'soon'"),
        (
            ["bcast", "-a", "./mine.py:spread"],
            "./mine.py:spread: expecting module:function, such as mine:ring",
        ),
        (["bcast", "-a", "mine.py:spread"], "mine.py:spread: expecting module:function, such as mine:ring"),
        (["bcast", "-a", "nowhere.json"], "nowhere.json: cannot be read: No such file"),
        (["bcast", "-a", "star"], "a module:function, or a schedule's file (.json), got 'star'"),
    ],
)
def test_what_a_user_brings_and_is_wrong_is_one_line(folder, arguments, message):
    done = topompi(folder, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_example_of_the_page_runs_as_the_page_says(tmp_path):
    page = (ROOT / "docs" / "schedules.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    half = "def half(network):\n    rows = [(0, 0, r, 0, 0, 1, 0, 1, 0) for r in range(network.num_ranks // 2)]\n"
    half += '    return Schedule.from_rows("bcast", network.num_ranks, "half", rows, root=0)\n'
    (tmp_path / "mine.py").write_text(code + half)
    where = ("--export", "json", "-o", "star.json")
    assert topompi(tmp_path, "bcast", "-a", "mine:star", "--root", "3", *where).returncode == 0
    assert topompi(tmp_path, "bcast", "-a", "star.json", "--root", "3").returncode == 0
    assert topompi(tmp_path, "bcast", "-a", "mine:half").stderr.strip() in page


def simulate(folder, *arguments):
    line = [sys.executable, "-m", "osu_like_bench", "simulate", *arguments, "--topology", FABRIC]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)


def test_functions_and_files_are_simulated_beside_ours(folder):
    """The same messages take the same time, whoever made the schedule."""
    assert topompi(folder, "alltoall", "-a", "shift", "--export", "json", "-o", "s.json").returncode == 0
    names = ("shift", "mine:shifted", "s.json")
    done = simulate(folder, "alltoall", "-a", ",".join(names), "-m", "4K,16K", "--peers", "none", "--json", "r.json")
    assert done.returncode == 0, done.stderr
    times = {}
    for result in json.loads((folder / "r.json").read_text())["results"]:
        times.setdefault(result["side"], []).append(result["samples"])
    assert times["shift"] == times["mine:shifted"] == times["s.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine:short", "--algorithm: mine:short: end: output block 0 of rank 15 is never written"),
        ("tree", "--algorithm: expecting an algorithm for bcast of binomial, "),
    ],
)
def test_what_is_wrong_is_not_simulated(folder, name, message):
    done = simulate(folder, "bcast", "-a", name, "-m", "4K")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
