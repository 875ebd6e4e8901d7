"""Selection: rules, memory and model without MPI."""

import json
import re
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.errors import TopompiError
from topompi.inputs.settings import cache_directory
from topompi.mapping import place
from topompi.mpi.execution.eligibility import why_not
from topompi.mpi.execution.specs import CALLS, NATIVE, NO_NEEDS, Needs
from topompi.mpi.prediction.libraries import model_of
from topompi.mpi.prediction.predictor import MOST_RANKS, Native, Predictor
from topompi.mpi.prediction.untuned import GAIN, UNSIZED, candidates, predict
from topompi.mpi.selection.advisor import MOST_CUT, MOST_RIVALS, Advisor
from topompi.mpi.selection.choice import Choice
from topompi.mpi.selection.classes import class_bytes, size_class
from topompi.mpi.selection.judging import CLEAR, Verdict
from topompi.mpi.selection.memory import VerdictFile
from topompi.mpi.selection.policy import Policy
from topompi.mpi.selection.rules import Rule, Rules, RulesError
from topompi.mpi.selection.trial import Contest
from topompi.schedules.analysis.model import Model
from topompi.schedules.registry import ALGORITHMS
from topompi.schedules.segments import can_be_cut
from topompi.topology import TopologyInterface, load
from topompi.views.jobshape import JobShape


def job_on(source, hosts, ppn=1, policy="block", library="Open MPI 5.0.11", **rest):
    routes = load(source).routes
    names = list(routes.fabric.hosts)[:hosts]
    interface = TopologyInterface.place(place(hosts * ppn, names, policy), routes, source=source, **rest)
    return JobShape(interface, library, "node01")


JOB = job_on("xgft:4,4;1,1", 16, 2)


def anything(algorithm):
    return True


def rules_text(*rules):
    return '{"format": "topompi rules", "version": 1, "rules": [' + ", ".join(rules) + "]}"


# --- classes -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**62))
def test_a_class_holds_its_sizes(nbytes):
    smallest, largest = class_bytes(size_class(nbytes))
    assert smallest <= nbytes <= largest
    assert nbytes == 0 or largest == 2 * smallest - 1


METHODS = {name: spec.collective for name, spec in CALLS.items() if spec.collective in ALGORITHMS}


@pytest.mark.parametrize("method", METHODS)
def test_rules_take_every_algorithm_of_a_method_and_no_other(method):
    collective = METHODS[method]
    for algorithm in {name for some in ALGORITHMS.values() for name in some}:
        for field, value in (("methods", method), ("collective", collective)):
            text = rules_text(json.dumps({field: value, "algorithm": algorithm}))
            if algorithm not in ALGORITHMS[collective] or (field == "methods" and why_not(method, algorithm)):
                with pytest.raises(RulesError, match="algorithm"):
                    Rules.parse(text)
                continue
            assert Rules.parse(text).first(method, 1, JOB)[1].algorithm == algorithm


@pytest.mark.parametrize("method", METHODS)
def test_what_is_chosen_for_jobs_too_large_to_cost_is_an_algorithm_of_the_method(method):
    predictor, asked = Predictor(job_on("xgft:4,4;1,1", 16, MOST_RANKS // 16 + 1).interface), set()
    for nbytes in (0, 1000, 10**6):
        predict(predictor, method, nbytes, 0, lambda name: not asked.add(name))
    assert {name.partition("/")[0] for name in asked} <= {NATIVE, *ALGORITHMS[METHODS[method]]}


# --- rules ---------------------------------------------------------------------------------------------------------

edges = st.sampled_from([0, 1, 2, 3, 15, 16, 17, 31, 32, 33])  # around what JOB has
bounds = st.just((0, inf)) | st.tuples(edges, edges | st.just(inf)).map(sorted).map(tuple)
rules = st.builds(
    lambda method, algorithm, ranges, topology: Rule(algorithm, frozenset([method]), *ranges, topology),
    st.sampled_from(["Alltoall", "Alltoallv"]),
    st.sampled_from([NATIVE, *ALGORITHMS["alltoall"]]),
    st.tuples(bounds, bounds, bounds, bounds),
    st.sampled_from(["", "0123456789", JOB.topology, JOB.topology[:8], "xgft:4,4;1,1", "another"]),
).filter(lambda rule: not any(why_not(method, rule.algorithm) for method in rule.methods))


@given(st.lists(rules, max_size=6))
def test_rules_survive_their_file(given_rules):
    text = Rules("", tuple(given_rules)).to_json(job="as it was")
    assert Rules.parse(text).rules == tuple(given_rules)


@given(st.lists(rules, max_size=6), st.sampled_from(["Alltoall", "Alltoallv", "Bcast"]), edges)
def test_the_first_rule_that_matches_wins(given_rules, method, nbytes):
    def holds(rule):  # the conditions, spelt out one by one
        numbers = [(nbytes, rule.nbytes), (32, rule.ranks), (16, rule.hosts), (2, rule.ranks_per_host)]
        named = rule.topology in ("", JOB.topology, JOB.topology[:8], "xgft:4,4;1,1")
        return method in rule.methods and named and all(low <= number <= high for number, (low, high) in numbers)

    matching = [number for number, rule in enumerate(given_rules, 1) if holds(rule)]
    found = Rules("", tuple(given_rules)).first(method, nbytes, JOB)
    assert (found and found[0]) == (matching[0] if matching else None)


def test_both_ends_of_a_range_belong_to_it():
    rule = Rule(NATIVE, nbytes=(2, 4), ranks=(32, 32), hosts=(1, 16), ranks_per_host=(2, 3))
    assert [rule.matches("Bcast", nbytes, JOB) for nbytes in (1, 2, 4, 5)] == [False, True, True, False]


def test_a_rule_whose_algorithm_cannot_run_is_passed_over():
    both = Rules("", (Rule("ring", frozenset(["Allreduce"])), Rule("doubling", frozenset(["Allreduce"]))))
    number, rule = both.first("Allreduce", 8, JOB, lambda algorithm: algorithm != "ring")
    assert (number, rule.algorithm) == (2, "doubling")


def test_a_rule_that_is_passed_over_is_named_with_its_reason(monkeypatch, tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(rules_text('{"algorithm": "ring"}', '{"methods": "Alltoall", "algorithm": "native"}'))
    choice = advise(advisor(monkeypatch, tmp_path, RULES=path))
    reason = "ring cannot run: alltoall has no algorithm of this name"
    assert choice == Choice(NATIVE, f"rules file {path}, rule 2; rule 1 of {path} passed over, {reason}")
    other = advisor(monkeypatch, tmp_path, RULES=path).advise(
        ("Allgather", 10, NO_NEEDS), 0, lambda name: True, measurable=False
    )
    assert other == Choice("ring", f"rules file {path}, rule 1")


def test_a_rule_that_names_a_call_which_its_algorithm_cannot_run_is_refused_with_the_reason():
    for methods in ('"Alltoallv"', '["Alltoall", "Alltoallv"]'):
        with pytest.raises(RulesError, match=r"can run Alltoallv \(a rank of Alltoallv knows only its own blocks"):
            Rules.parse(rules_text(f'{{"methods": {methods}, "algorithm": "bruck"}}'))
    assert Rules.parse(rules_text('{"collective": "alltoall", "algorithm": "bruck"}')).rules


def test_what_all_ranks_know_of_a_rule_that_is_passed_over_is_said_where_nothing_can_be_predicted():
    rules = Rules.parse(rules_text('{"collective": "alltoall", "algorithm": "bruck"}'))
    virtual = replace(JOB, interface=replace(JOB.interface, virtual=True))
    choice = Policy(rules, forgetful=True).choice(("Alltoallv", 10, NO_NEEDS), virtual, lambda name: name != "bruck")
    assert (choice.algorithm, choice.local) == (NATIVE, True)
    assert "rule 1 of rules passed over, bruck cannot run: a rank of Alltoallv knows" in choice.reason


@pytest.mark.parametrize("forgetful", [False, True])
def test_only_a_rule_takes_a_persistent_call_from_the_library(forgetful):
    rules = Rules.parse(rules_text('{"collective": "alltoall", "bytes": [null, 600], "algorithm": "bruck"}'))
    for asked, method, number, algorithm in (
        (rules, "Alltoall", 10, "native" if class_bytes(10)[0] > 600 else "bruck"),
        (rules, "Alltoall", 12, "native"),
        (rules, "Allgather", 5, "native"),
        (None, "Alltoall", 10, "native"),
    ):
        policy = Policy(asked, forgetful=forgetful)
        assert policy.request((method, number, NO_NEEDS), JOB, lambda name: True).algorithm == algorithm
        assert policy.asks(method) == (asked is rules and method == "Alltoall")
    for one, word, asks in ((rules, "", True), (None, "", False), (None, "hosts", True), (None, "native", False)):
        assert Policy(one, neighbours=word).asks_for_requests == asks


def test_every_host_must_have_the_ranks_that_a_rule_wants():
    uneven = replace(JOB, interface=TopologyInterface.place(["a", "a", "b"]))
    rule = Rule(NATIVE, ranks_per_host=(2, 2))
    assert not rule.matches("Bcast", 1, uneven)
    assert rule.matches("Bcast", 1, JOB)


def test_a_rule_may_write_sizes_as_people_do():
    rule = '{"bytes": ["64K", null], "ranks": 8, "collective": "alltoall", "algorithm": "colouring"}'
    (parsed,) = Rules.parse(rules_text(rule)).rules
    assert (parsed.nbytes, parsed.ranks) == ((65536, inf), (8, 8))
    assert parsed.methods == {"Alltoall", "Alltoallv", "Alltoallw"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("7", "rule 2: expecting an object"),
        ('{"methods": "Bcast"}', "rule 2: algorithm: expecting one of"),
        ('{"methods": "Bcast", "algorithm": "colouring"}', "rule 2: algorithm: .* got 'colouring'"),
        ('{"methods": ["Bcsat"], "algorithm": "native"}', "rule 2: methods: .* got .'Bcsat'"),
        ('{"methods": [], "algorithm": "native"}', "rule 2: methods"),
        ('{"collective": "bcsat", "algorithm": "native"}', "rule 2: collective: .* got 'bcsat'"),
        ('{"collective": "bcast", "methods": "Bcast", "algorithm": "native"}', "got both"),
        ('{"byte": 1, "algorithm": "native"}', "rule 2: expecting fields of .* got 'byte'"),
        ('{"bytes": [2, 1], "algorithm": "native"}', "rule 2: bytes: expecting the smallest first"),
        ('{"bytes": [1], "algorithm": "native"}', "rule 2: bytes: expecting a number or"),
        ('{"bytes": "1.5K", "algorithm": "native"}', "rule 2: bytes: expecting a whole number"),
        ('{"ranks": -1, "algorithm": "native"}', "rule 2: ranks: .* got -1"),
        ('{"ranks": true, "algorithm": "native"}', "rule 2: ranks: .* got True"),
        ('{"topology": 1, "algorithm": "native"}', "rule 2: topology: expecting a string"),
    ],
)
def test_a_wrong_rule_is_named(rule, words, tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(rules_text('{"algorithm": "native"}', rule))
    with pytest.raises(RulesError, match=f"^{re.escape(str(path))}: .*{words}"):
        Rules.read(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "topompi rules", "version": 2, "rules": []}', "[" * 99999]
)
def test_what_is_no_rules_file_is_refused(text):
    with pytest.raises(RulesError, match=r"^f(:1)?: expecting "):
        Rules.parse(text, "f")


# --- memory --------------------------------------------------------------------------------------------------------

KEY = ("Alltoall", 17, NO_NEEDS)
VERDICT = Verdict("colouring", 1.5, 0.001, "colouring")


def test_a_verdict_is_remembered_by_its_class(tmp_path):
    memory = VerdictFile(JOB, tmp_path / "new" / "folder")
    assert memory.recall(KEY) is None
    memory.keep(KEY, VERDICT)
    memory.keep(("Allreduce", 4, Needs(order=True, whole=True)), replace(VERDICT, algorithm="ring"))
    again = VerdictFile(JOB, tmp_path / "new" / "folder")
    assert again.recall(KEY) == VERDICT
    assert again.recall(("Allreduce", 4, Needs(order=True, whole=True))).algorithm == "ring"
    assert again.recall(("Allreduce", 4, NO_NEEDS)) is None
    assert again.recall(("Alltoall", 16, NO_NEEDS)) is None


def test_how_many_trials_found_the_same_is_remembered_and_was_one_where_it_is_not_told(tmp_path):
    memory = VerdictFile(JOB, tmp_path)
    memory.keep(KEY, replace(VERDICT, trials=2))
    assert memory.recall(KEY).trials == 2
    data = json.loads(memory.path.read_text())
    del data["decisions"]["Alltoall 17"]["trials"]
    memory.path.write_text(json.dumps(data))
    assert memory.recall(KEY) == VERDICT


def test_another_network_layout_library_or_machine_is_another_file(tmp_path):
    jobs = [
        JOB,
        job_on("xgft:4,4;1,2", 16, 2),
        job_on("xgft:4,4;1,1", 15, 2),
        job_on("xgft:4,4;1,1", 16, 1),
        job_on("xgft:4,4;1,1", 16, 2, "cyclic"),
        job_on("xgft:4,4;1,1", 16, 2, library="MPICH 5.0.0"),
        job_on("xgft:4,4;1,1", 16, 2, virtual=True),
        replace(JOB, machine="other01"),
    ]
    paths = [VerdictFile(job, tmp_path).path for job in jobs]
    assert len(set(paths)) == len(paths)
    assert VerdictFile(job_on("xgft:4,4;1,1", 16, 2), tmp_path).path == paths[0]
    assert VerdictFile(replace(JOB, machine="node02"), tmp_path).path == paths[0]  # another node of the same cluster


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\x00\xff",
        '{"format": "topompi decisions", "version": 2, "decisions": {}}',
        '{"format": "topompi decisions", "version": 1, "decisions": []}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": 3}}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": {"algorithm": 1}}}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": '
        '{"algorithm": "colouring", "rival": "", "ratio": NaN, "seconds": 1}}}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": '
        '{"algorithm": "colouring", "rival": "", "ratio": 2.0, "seconds": 1.0, "trials": "2"}}}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": '
        '{"algorithm": "colouring", "rival": "", "ratio": 2.0, "seconds": 1.0, "trials": 0}}}',
        '{"format": "topompi decisions", "version": 1, "decisions": {"Alltoall 17": '
        '{"algorithm": "colouring", "rival": "", "ratio": 2.0, "seconds": 1.0, "trials": 1' + 400 * "0" + "}}}",
    ],
)
def test_a_damaged_file_counts_as_empty_and_is_replaced(text, tmp_path):
    memory = VerdictFile(JOB, tmp_path)
    memory.path.write_text(text, encoding="latin-1")
    assert memory.recall(KEY) is None
    memory.keep(KEY, VERDICT)
    assert memory.recall(KEY) == VERDICT


def test_a_cache_that_cannot_be_written_ends_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    memory = VerdictFile(JOB, tmp_path / "file" / "below")
    memory.keep(KEY, VERDICT)
    assert memory.recall(KEY) is None


def test_the_cache_is_where_users_expect_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "topompi"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the XDG base directory specification
    monkeypatch.setenv("HOME", "/home/u")
    assert str(cache_directory()) == "/home/u/.cache/topompi"


# --- model ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["Bcast", "Gather", "Scatter", "Allgather", "Reduce", "Allreduce", "Alltoall"])
def test_the_model_leaves_native_only_for_a_gain(method):
    predictor = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 16, 4, "cyclic").interface)
    for nbytes in (96, 6144, 98304):
        choice = predict(predictor, method, nbytes, 0, anything)
        costs = {
            name: predictor.seconds(method, name, nbytes, 0) for name in candidates(predictor, method, nbytes, anything)
        }
        native = predictor.native(method, nbytes, 0).seconds
        best = min(costs, key=costs.get, default=NATIVE)
        wins = best != NATIVE and native >= GAIN * costs[best]
        assert (choice.algorithm != NATIVE) == wins
        assert choice.seconds == (costs[choice.algorithm] if wins else native if costs else None)
        assert not wins or choice.seconds < GAIN * costs[best], "one of those that are predicted alike"


def test_no_default_is_an_algorithm_that_has_lost():
    predictor = Predictor(JOB.interface)
    for method, collective in METHODS.items():
        for name in candidates(predictor, method, 1 << 20, anything):
            assert ALGORITHMS[collective][name.partition("/")[0]].default < inf
        assert candidates(predictor, method, 1, anything) == []


def test_of_rings_that_are_predicted_alike_the_one_whose_messages_are_cut_runs(monkeypatch):
    predictor = Predictor(job_on("xgft:4,4;1,1", 16).interface)
    monkeypatch.setattr(predictor, "seconds", lambda *call: 1.0)
    monkeypatch.setattr(predictor, "native", lambda *call: Native("slow", 9.0))
    assert predict(predictor, "Allgather", 256 << 10, 0, anything).algorithm == "ring/32K"
    monkeypatch.setattr(predictor, "seconds", lambda method, name, *call: 2.0 if "/" in name else 1.0)
    assert predict(predictor, "Allgather", 256 << 10, 0, anything).algorithm == "ring"


def test_only_what_has_a_step_for_each_rank_needs_longer_calls_on_more_ranks():
    for hosts, ring in ((16, True), (64, False)):
        predictor = Predictor(job_on("xgft:8,8;1,2", hosts, 1, "block").interface)
        names = candidates(predictor, "Allreduce", 128 << 10, anything)
        assert "halving" in names
        assert ("ring" in names) == ring
    predictor = Predictor(job_on("xgft:8,8;1,2", 64, 8, "cyclic").interface)
    names = candidates(predictor, "Allreduce", 32 << 10, anything)
    assert "lanes_halving" in names
    assert "lanes_ring" not in names, "its hosts are the ranks of the ring"


def test_hosts_on_one_leaf_switch_gain_by_schedules_if_they_have_several_ranks():
    several = Predictor(job_on("xgft:8,1;1,1@rate=4xHDR", 8, 4, "random:1").interface)
    for method in ("Bcast", "Reduce", "Allreduce", "Allgather"):
        assert predict(several, method, 1 << 20, 0, anything).algorithm != NATIVE


def test_schedules_that_cannot_run_are_no_reason_to_miss_routes(monkeypatch):
    one = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 8).interface)
    monkeypatch.setattr(one, "seconds", lambda *_: np.inf)
    found = predict(one, "Bcast", 1 << 20, 0, anything)
    assert found.algorithm == NATIVE
    assert found.seconds is not None
    assert found.reason.startswith("native: no schedule can run here; cost model: ")


def test_native_where_nothing_is_known_or_nothing_is_scarce():
    flat = Predictor(TopologyInterface.place(["a", "a", "b", "b"]))
    assert predict(flat, "Alltoall", 10**6, 0, anything).reason == "native: nothing is known above the hosts"
    one = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 4).interface)
    assert predict(one, "Alltoall", 10**6, 0, anything).algorithm == NATIVE
    alone = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 1, 4).interface)
    assert predict(alone, "Bcast", 10**6, 0, anything).reason == "native: one host"
    rated = job_on("xgft:4,4;1,1", 16).interface
    fabric = rated.routes.fabric
    unknown = replace(fabric, link_rate=np.full(fabric.num_links, np.nan))
    unrated = Predictor(replace(rated, routes=replace(rated.routes, fabric=unknown)))
    assert (
        predict(unrated, "Alltoall", 10**6, 0, anything).reason == "native: the topology source gives no rates of links"
    )
    full = Predictor(job_on("xgft:4,4;1,4@rate=4xHDR", 16).interface)
    assert predict(full, "Gatherv", 0, 0, anything).reason == f"native: {UNSIZED}"


def test_a_long_alltoall_that_shares_links_gets_a_schedule_that_fills_them():
    job = job_on("xgft:4,4;1,1@rate=1xSDR", 16, policy="random:1")
    predictor = Predictor(job.interface, model_of("Open MPI v5.0.11", {}))
    choice = predict(predictor, "Alltoall", 10**5, 0, anything)
    assert ALGORITHMS["alltoall"][choice.algorithm.partition("/")[0]].shares_links
    assert predict(predictor, "Alltoall", 100, 0, anything).algorithm == NATIVE


def test_the_start_ups_are_those_of_networks_as_fast():
    quick = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 16).interface).model
    slow = Predictor(job_on("xgft:4,4;1,1@rate=1xSDR", 16).interface).model
    assert quick.t_s == Model.preset("stampede").t_s
    assert quick.rendezvous.waits < slow.rendezvous.waits
    assert quick.t_s[1] < slow.t_s[1]


def test_what_is_costly_to_generate_is_costed_by_its_bound_where_many_ranks_wait():
    predictor = Predictor(job_on("xgft:4,4;1,1@rate=4xHDR", 16, MOST_RANKS // 16 + 1).interface)
    choice = predict(predictor, "Alltoall", 10**5, 0, anything)
    assert choice.algorithm == NATIVE or ALGORITHMS["alltoall"][choice.algorithm.partition("/")[0]].shares_links
    for method in ("Allreduce", "Gather", "Alltoall"):
        assert predict(predictor, method, 100, 0, anything).algorithm == NATIVE
    ranked = predictor.rank("Alltoall", 10**6, 0, anything)
    costly = {name for name, one in ALGORITHMS["alltoall"].items() if one.costly}
    assert {name for name, seconds in ranked if np.isnan(seconds)} == costly
    assert not any(name in costly for _, name, *_ in predictor._made)


def test_a_call_whose_blocks_are_too_many_for_a_schedule_is_costed_by_other_algorithms():
    job = job_on("XGFT(2; 20,16; 1,16)", 256, 64)
    predictor = Predictor(job.interface, model_of("Open MPI v5.0.11", {}))
    native = predictor.native("Reduce_scatter_block", 96 << 24, 0)
    assert "ignores switches" in native.says
    assert 0 < native.seconds < inf


# --- the order of weight -------------------------------------------------------------------------------------------


def advisor(monkeypatch, tmp_path, **environment):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Advisor(JOB, {f"TOPOMPI_{name}": str(value) for name, value in environment.items()})


def advise(one, measurable=True):
    return one.advise(KEY, 0, lambda name: not why_not("Alltoall", name), measurable=measurable)


def test_rules_weigh_more_than_memory_and_memory_more_than_the_model(monkeypatch, tmp_path):
    modelled = advise(advisor(monkeypatch, tmp_path))
    assert "cost model" in modelled.reason
    advisor(monkeypatch, tmp_path).keep(KEY, VERDICT)
    remembered = advise(advisor(monkeypatch, tmp_path))
    assert (remembered.algorithm, remembered.predicted) == ("colouring", 0.001)
    assert remembered.reason == "measured: 1.50x faster than native, in an earlier trial"
    assert advise(advisor(monkeypatch, tmp_path, TUNE="off")) == modelled
    path = tmp_path / "rules.json"
    path.write_text(rules_text('{"algorithm": "native"}'))
    ruled = advise(advisor(monkeypatch, tmp_path, RULES=path, TUNE="again"))
    assert ruled == Choice(NATIVE, f"rules file {path}, rule 1")


def remembered(monkeypatch, tmp_path, *ratios, rival="colouring"):
    """What is remembered after trials with these gains, each in a job of its own that measures."""
    for ratio in ratios:
        winner = rival if ratio >= CLEAR else NATIVE
        advisor(monkeypatch, tmp_path, TUNE="measure").keep(KEY, Verdict(winner, ratio, 0.001, rival))
    return advisor(monkeypatch, tmp_path).memory.recall(KEY)


def test_a_rival_is_looked_at_again_until_its_gain_is_sure(monkeypatch, tmp_path):
    def later(tune, **rest):
        return advise(advisor(monkeypatch, tmp_path, TUNE=tune), **rest)

    remembered(monkeypatch, tmp_path, 1.3)
    assert later("measure") == Contest((NATIVE, "colouring"), again=True)
    assert later("measure", measurable=False).algorithm == "colouring"
    assert later("").algorithm == "colouring"
    assert later("").reason == "measured: 1.30x faster than native, in an earlier trial"
    remembered(monkeypatch, tmp_path, 1.3)
    assert later("measure").reason == "measured: 1.30x faster than native, in 2 earlier trials"
    assert len(later("again").candidates) > 2


def test_a_rival_that_loses_the_trial_after_the_first_is_left_for_good(monkeypatch, tmp_path):
    assert remembered(monkeypatch, tmp_path, 1.5, 1.0) == Verdict(NATIVE, 1.0, 0.001, "colouring", 2)


def test_a_rival_that_loses_a_trial_is_kept_for_what_it_gains_in_all(monkeypatch, tmp_path):
    found = remembered(monkeypatch, tmp_path, 1.5, 1.24, 0.95)
    assert (found.algorithm, found.trials) == ("colouring", 3)
    assert found.ratio == pytest.approx((1.24 * 0.95) ** 0.5)
    assert not found.sure
    found = remembered(monkeypatch, tmp_path, 0.9)
    assert (found.algorithm, found.trials) == (NATIVE, 4)
    assert advise(advisor(monkeypatch, tmp_path, TUNE="measure")).algorithm == NATIVE


def test_a_remembered_gain_that_makes_no_sense_is_not_sure(tmp_path):
    memory = VerdictFile(JOB, tmp_path)
    memory.keep(KEY, Verdict("colouring", 0.0, 0.0, "colouring", 3))
    assert not memory.recall(KEY).sure
    memory.keep(KEY, Verdict("colouring", 1e308, 0.0, "colouring", 1_000_000))
    assert memory.recall(KEY).and_then(Verdict("colouring", 1e308, 0.0, "colouring")).sure


def test_trials_of_different_rivals_are_not_taken_together(monkeypatch, tmp_path):
    remembered(monkeypatch, tmp_path, 1.4)
    assert remembered(monkeypatch, tmp_path, 1.2, rival="tacs1") == Verdict("tacs1", 1.2, 0.001, "tacs1")
    assert advise(advisor(monkeypatch, tmp_path, TUNE="measure")) == Contest((NATIVE, "tacs1"), again=True)


def test_what_is_measured_again_replaces_what_is_remembered(monkeypatch, tmp_path):
    remembered(monkeypatch, tmp_path, 1.4, 1.4)
    verdict = Verdict("colouring", 1.2, 0.001, "colouring")
    advisor(monkeypatch, tmp_path, TUNE="again").keep(KEY, verdict)
    assert remembered(monkeypatch, tmp_path) == verdict


def test_a_trial_has_native_and_few_schedules(monkeypatch, tmp_path):
    candidates = advise(advisor(monkeypatch, tmp_path, TUNE="again")).candidates
    assert candidates[0] == NATIVE
    cut = [name for name in candidates if can_be_cut("alltoall", name)]
    whole = [name for name in candidates if name not in cut]
    assert len(candidates) == len(set(candidates))
    assert len(whole) <= 1 + MOST_RIVALS
    assert len(cut) <= MOST_CUT
    assert all(name == NATIVE or name in ALGORITHMS["alltoall"] for name in whole)
    assert isinstance(advise(advisor(monkeypatch, tmp_path, TUNE="again"), measurable=False), Choice)


def test_a_remembered_algorithm_that_is_gone_does_not_count(monkeypatch, tmp_path):
    advisor(monkeypatch, tmp_path).keep(KEY, replace(VERDICT, algorithm="of another version"))
    assert "cost model" in advise(advisor(monkeypatch, tmp_path)).reason


def test_wrong_words_in_the_environment_are_refused(monkeypatch, tmp_path):
    with pytest.raises(TopompiError, match="TOPOMPI_TUNE: expecting one of measure, again, off, got 'yes'"):
        advisor(monkeypatch, tmp_path, TUNE="yes")
    with pytest.raises(TopompiError, match="cannot be read"):
        advisor(monkeypatch, tmp_path, RULES=tmp_path / "missing")
