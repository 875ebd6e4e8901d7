"""Communicators that all ranks of a job made together, and their common selection of algorithms."""

from collections import Counter

import numpy as np
import pytest

from tests.support import ROOT, pytest_on_ranks
from topompi.mpi.execution.specs import NATIVE, NO_NEEDS
from topompi.mpi.execution.talks import Talks
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.untuned import predict
from topompi.mpi.selection.advisor import CLEAR_OF_SIBLINGS, Advisor
from topompi.mpi.selection.judging import Verdict
from topompi.mpi.selection.selector import Selector
from topompi.mpi.selection.trial import TOGETHER, Contest, Trial
from topompi.topology import TopologyInterface, load
from topompi.views.jobshape import JobShape
from topompi.views.siblings import Siblings

ROUTES = load("XGFT(2; 4,4; 1,1)").routes


@pytest.mark.parametrize("size", [1, 5])
def test_siblings_on_all_ranks(size):
    assert "passed" in pytest_on_ranks(size, ROOT / "tests" / "programs" / "siblings.py", timeout=150)


def column(number, ppn=2):
    """One of the columns of a grid whose rows are hosts, in random order, and what it knows of the others."""
    hosts = [ROUTES.fabric.hosts[host] for host in np.random.default_rng(1).permutation(16)]
    whole = TopologyInterface.place([host for host in hosts for _ in range(ppn)], ROUTES)
    ranks = np.arange(16 * ppn)
    siblings = Siblings.of_split(whole, np.stack((ranks % ppn, 0 * ranks, ranks), axis=1), number)
    return TopologyInterface.place(hosts, ROUTES), siblings


def test_they_try_the_same_at_the_same_time_whatever_each_measures(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried = []
    for number, speed in enumerate((1.0, 1e-4)):
        interface, siblings = column(number)
        advisor = Advisor(JobShape(interface, "Open MPI 5.0.11", "node01", siblings), {"TOPOMPI_TUNE": "measure"})
        short = advisor.advise(("Alltoall", 14, NO_NEEDS), 0, lambda name: True, measurable=True)
        trial = Trial(advisor.advise(("Alltoall", 17, NO_NEEDS), 0, lambda name: True, measurable=True))
        assert set(trial.contest.candidates) == {NATIVE, "paced", "joint", "even", "joint/32K", "even/32K"}
        assert "shift" in short.candidates
        generator, calls = np.random.default_rng(number), []
        while (name := trial.next()) is not None:
            calls.append(name)
            trial.note(speed * generator.uniform(0.9, 1.1) / (1.3 if name == "joint/32K" else 1))
        assert [calls.count(name) for name in trial.contest.candidates] == [TOGETHER[0].rounds] * 6
        trial.close(trial.times)
        assert trial.verdict.algorithm == "joint/32K"
        tried.append(calls)
    assert tried[0] == tried[1]


def test_what_they_tried_together_they_do_not_look_at_again_one_by_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    interface, siblings = column(0)
    advisor = Advisor(JobShape(interface, "Open MPI 5.0.11", "node01", siblings), {"TOPOMPI_TUNE": "measure"})
    long, short = ("Alltoall", 17, NO_NEEDS), ("Alltoall", 14, NO_NEEDS)
    for key in (long, short):
        advisor.keep(key, Verdict("even", 1.5, 0.001, "even"))
    assert advisor.advise(long, 0, lambda name: True, measurable=True).algorithm == "even"
    assert advisor.advise(short, 0, lambda name: True, measurable=True) == Contest(
        (NATIVE, "even"), again=True, clear=CLEAR_OF_SIBLINGS
    )


@pytest.mark.parametrize(("won", "winner"), [(11, "a"), (8, "a"), (7, NATIVE)])
def test_they_need_not_be_as_sure_as_a_communicator_alone(won, winner):
    trial, calls = Trial(Contest((NATIVE, "a"), together=True)), {NATIVE: 0, "a": 0}
    while (name := trial.next()) is not None:
        calls[name] += 1
        trial.note(1.0 if name == NATIVE else 0.8 if calls[name] <= won else 2.0)
    trial.close(trial.times)
    assert trial.verdict.algorithm == winner


@pytest.mark.parametrize(("gain", "winner"), [(1.1, NATIVE), (1.3, "a")])
def test_where_they_try_apart_a_gain_must_be_large(gain, winner):
    trial = Trial(Contest((NATIVE, "a"), clear=CLEAR_OF_SIBLINGS))
    while trial.verdict is None:
        name = trial.next()
        if name is None:
            trial.close(trial.times)
        else:
            trial.note(0.001 / (gain if name == "a" else 1))
    assert trial.verdict.algorithm == winner
    assert trial.verdict.ratio == pytest.approx(gain)


def tried(siblings, method, nbytes, gain):
    """What a selector settles on where one rival is so many times faster than all others; and the calls it took."""
    selector = Selector(column(1)[0], Talks(0, 1), siblings)
    calls, rival = Counter(), "even" if method == "Alltoall" else "leaders"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TOPOMPI_TUNE", "measure")
        while (choice := selector.choose(method, nbytes, root=0)).trial is not None:
            calls[choice.algorithm] += 1
            choice.trial.note(0.001 / (gain if choice.algorithm == rival else 1))
    return choice.algorithm, calls


def test_siblings_that_exchange_long_messages_drop_no_candidate(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    winner, calls = tried(column(1)[1], "Alltoall", 1 << 16, 1.3)
    assert winner == "even"
    assert set(calls.values()) == {TOGETHER[0].rounds}
    _, alone = tried(None, "Alltoall", 1 << 16, 1.3)
    assert len(set(alone.values())) > 1


@pytest.mark.parametrize(
    ("number", "method", "gain", "winner"),
    [
        (1, "Alltoall", 1.1, NATIVE),
        (1, "Alltoall", 1.3, "even"),
        (None, "Alltoall", 1.1, "even"),
        (1, "Bcast", 1.1, "leaders"),
    ],
)
def test_siblings_that_exchange_short_messages_want_a_large_gain(number, method, gain, winner, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tried(number and column(number)[1], method, 1 << 13, gain)[0] == winner


@pytest.mark.parametrize(("number", "method"), [(None, "Alltoall"), (None, "Bcast"), (1, "Alltoall")])
def test_the_next_job_tries_what_won_before_alone(number, method, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    siblings = number and column(number)[1]
    winner, first = tried(siblings, method, 1 << 13, 1.4)
    again, second = tried(siblings, method, 1 << 13, 1.4)
    assert winner == again != NATIVE
    assert set(second) == {NATIVE, winner} < set(first)


def test_the_model_costs_all_of_them_together():
    """Twice the communicators on the same links take twice the time, and the joint schedule is among the cheapest."""
    interface, siblings = column(1)
    assert siblings.number == 1
    alone, together = Predictor(interface), Predictor(interface, siblings=siblings)
    for name in ("shift", "even"):
        one, two = (each.seconds("Alltoall", name, 1 << 20, 0) for each in (alone, together))
        assert two / one == pytest.approx(2, rel=0.05)
    ranking = [name for name, _ in together.rank("Alltoall", 1 << 20, 0, lambda name: True)]
    assert ranking.index("paced") <= 3
    assert ranking.index("joint") == ranking.index("paced") + 1  # the same steps, and with fewer in flight before more
    choice = predict(together, "Alltoall", 1 << 20, 0, lambda name: name in ("paced", "joint", "native"))
    assert choice.algorithm == "paced", choice.reason


def test_what_is_measured_counts_for_such_company_only():
    interface, siblings = column(0)
    other = column(0, ppn=4)[1]
    keys = {JobShape(interface, "lib", "node", company).key for company in (None, siblings, other)}
    assert len(keys) == 3
    assert JobShape(interface, "lib", "node", siblings).key == JobShape(interface, "lib", "node", column(1)[1]).key


def test_more_than_can_be_costed_are_costed_alone():
    interface, siblings = column(0)
    many = tuple(np.arange(300) + 300 * number for number in range(2))
    many_siblings = Siblings(siblings.interface, np.arange(600), many, 0)
    assert Predictor(interface, siblings=many_siblings).together is None
