"""Sessions: programs added and removed while time passes, against batches, smaller steps and an independent oracle."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.netsim.test_netsim import one_switch, program, random_program, random_wiring
from tests.netsim.test_packets import EAGER, MTU, PACKET, network
from tests.netsim.test_packets import flows as packet_flows
from tests.support import ROOT, examples
from topompi.netsim import BACKGROUND, ONCE, UNTIL_ALL_RAN, FlowSession, Hosts, NetsimError, Session, packets
from topompi.netsim import run as flow
from topompi.netsim.packets import PacketSession, Settings, running
from topompi.netsim.program import REPEATS

if running.Engine is None:
    pytest.skip("topompi was installed without a C compiler", allow_module_level=True)

MODELS = ["flows in C", "flows in Python", "packets"]
NETWORKS = {
    "packets": [network([4, 4], (0, 1, 4.096e9), (0, 1, 4.096e9)), network([3, 2, 2], (0, 1, 4e9), (1, 2, 2e9))]
}
seeds = given(st.integers(0, 2**32 - 1))


class Case:
    """A random network with what its model needs: sessions, batches and programs on it."""

    def __init__(self, model, seed, **hosts):
        self.model, self.seed, self.draw = model, seed, np.random.default_rng(seed)
        self.hosts = Hosts(
            **{
                "send_overhead": float(self.draw.choice([0, 3e-7])),
                "receive_overhead": float(self.draw.choice([0, 5e-7])),
                "copy_rate": float(self.draw.choice([1e9, 1e10])),
                "eager": float(self.draw.choice([0, 5e3])),
                "skew": float(self.draw.uniform(1e-7, 2e-6)),
                **hosts,
            }
        )
        if model == "packets":
            self.network = NETWORKS["packets"][seed % 2]
            self.about = {
                "settings": Settings(
                    queueing=str(self.draw.choice(["output", "input"])),
                    rendezvous=str(self.draw.choice(["get", "put"])),
                    adapter=str(self.draw.choice(["queue pairs", "in order"])),
                    processors=int(self.draw.choice([0, 0, 2])),
                ),
                "circles": True,
            }
        else:
            self.network, self.about = random_wiring(self.draw), {"compiled": model == "flows in C"}
        self.about |= {"hosts": self.hosts, "seed": seed}

    def program(self, repeat=ONCE):
        made = random_program(self.draw, self.network.num_hosts, repeat)
        steps = np.unique(made.step)
        return replace(made, named={"first": int(steps[0]), "last": int(steps[-1])})

    def programs(self, count=3):
        return [self.program(), *(self.program(repeat) for repeat in self.draw.choice(REPEATS, count - 1))]

    def session(self):
        return (PacketSession if self.model == "packets" else FlowSession)(self.network, **self.about)

    def batch(self, programs):
        return (packets.run if self.model == "packets" else flow)(self.network, programs, **self.about)


def finish(session):
    while session.waiting:
        session.advance()
    return session


def facts(session, count):
    """All that a session tells of its programs and links, to the last bit."""
    runs = [session.runs(handle) for handle in range(count)]
    times = [(one.ends.tobytes(), *(step.tobytes() for step in one.steps.values())) for one in runs]
    return times, session.link_bytes().tobytes(), session.now


def same(one, other):
    assert one.rank_seconds.tobytes() == other.rank_seconds.tobytes()
    assert one.job_seconds.tobytes() == other.job_seconds.tobytes()
    assert one.link_bytes.tobytes() == other.link_bytes.tobytes()
    assert one.bounds.tobytes() == other.bounds.tobytes()


def or_error(function, *given):
    """The value of a function, or the error that it raises."""
    try:
        return function(*given)
    except NetsimError as error:
        return str(error)


@pytest.mark.parametrize("model", MODELS)
@examples(40)
@seeds
def test_programs_added_one_by_one_at_the_beginning_are_the_batch(model, seed):
    case = Case(model, seed)
    programs, session = case.programs(), case.session()
    for one in programs:
        session.add(one)
    whole = or_error(case.batch, programs)
    if isinstance(whole, str):
        assert or_error(finish, session) == whole
    else:
        same(finish(session).result(), whole)


@pytest.mark.parametrize("model", MODELS)
@examples(40)
@seeds
def test_many_small_steps_are_one_large_step(model, seed):
    case = Case(model, seed)
    programs, end = case.programs(), float(case.draw.uniform(1e-6, 1e-3))
    once, often = case.session(), case.session()
    for one in programs:
        once.add(one)
        often.add(one)
    first = or_error(once.advance, end)
    if isinstance(first, str):
        return
    ended = {handle for stop in np.sort(case.draw.uniform(0, end, 30)) for handle in often.advance(float(stop))}
    assert {*often.advance(end), *ended} == {*first}
    assert facts(often, len(programs)) == facts(once, len(programs))
    if model != "packets":
        for one, other in ((once.loads(), often.loads()), (once.rates().rate, often.rates().rate)):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("model", MODELS)
@examples(40)
@seeds
def test_a_program_added_later_is_one_of_the_batch_that_starts_then(model, seed):
    case = Case(model, seed)
    programs, begin = case.programs(), float(case.draw.uniform(0, 1e-4))
    whole = or_error(case.batch, [*programs, replace(case.program(), start=begin)])
    case = Case(model, seed)
    session = case.session()
    for one in case.programs():
        session.add(one)
    case.draw.uniform(0, 1e-4)
    later = or_error(session.advance, begin)
    if isinstance(whole, str) or isinstance(later, str):
        return
    if session.waiting:  # else the batch would have let programs repeat which this session has not
        session.add(replace(case.program(), start=0.0))
        same(finish(session).result(), whole)


@pytest.mark.parametrize("model", MODELS)
@examples(20)
@seeds
def test_removing_a_program_that_has_ended_or_not_begun_leaves_no_trace(model, seed):
    case = Case(model, seed, skew=0.0)
    first, second, third = (case.program() for _ in range(3))
    with_both, without = case.session(), case.session()
    for session in (with_both, without):
        session.add(first)
        session.add(second, 5e-5)
    never = with_both.add(third, 10.0)
    for session in (with_both, without):
        if isinstance(or_error(session.advance, 2e-5), str):
            return
    with_both.remove(never)
    for session in (with_both, without):
        session.advance()
    ended = [handle for handle in range(2) if len(with_both.runs(handle).ends)]
    for handle in ended:
        with_both.remove(handle)
    assert facts(finish(with_both), 2)[0] == facts(finish(without), 2)[0]


# ---- an oracle of flows that come and go ----


def max_min_by_hand(paths, capacity):
    """Max-min fair rates by filling one link after the other."""
    rate, left, open_ = {}, list(capacity), set(range(len(paths)))
    while open_:
        users = {link: [one for one in open_ if link in paths[one]] for link in range(len(left))}
        share, link = min((left[link] / len(some), link) for link, some in users.items() if some)
        for one in users[link]:
            rate[one] = share
            open_.remove(one)
            for other in paths[one]:
                left[other] -= share
    return rate


def ends_by_hand(flows, gone, capacity):
    """When each flow ends, NaN for those that were taken away: flows are (begin, path, bytes), ``gone`` their times."""
    now, left, end = 0.0, [one[2] for one in flows], [np.nan] * len(flows)
    live = {one for one in range(len(flows)) if gone[one] > flows[one][0]}
    while live:
        here = sorted(one for one in live if flows[one][0] <= now)
        rate = max_min_by_hand([flows[one][1] for one in here], capacity)
        finish = [now + left[one] / rate[at] for at, one in enumerate(here)]
        changes = [flows[one][0] for one in live if flows[one][0] > now] + [gone[one] for one in live]
        then = min(finish + changes)
        for at, one in enumerate(here):
            left[one] -= rate[at] * (then - now)
            if finish[at] <= then * (1 + 1e-12):
                end[one] = then
        now = then
        live -= {one for one in live if not np.isnan(end[one]) or gone[one] <= now}
    return end


@pytest.mark.parametrize("compiled", [True, False])
@examples(60)
@seeds
def test_removing_a_running_program_leaves_its_rates_to_the_others(compiled, seed):
    draw = np.random.default_rng(seed)
    wiring = random_wiring(draw)
    wiring = replace(wiring, latency=np.zeros(len(wiring.rate)))
    count = int(draw.integers(2, 7))
    begin, gone = draw.uniform(0, 1e-3, count), np.where(draw.random(count) < 0.5, draw.uniform(0, 2e-3, count), np.inf)
    pairs = [draw.choice(wiring.num_hosts, 2, replace=False) for _ in range(count)]
    nbytes = draw.uniform(1e4, 1e6, count)
    session = FlowSession(wiring, compiled=compiled)
    events = sorted(
        [(time, 0, one) for one, time in enumerate(begin)] + [(time, 1, one) for one, time in enumerate(gone)]
    )
    handles = {}
    for time, kind, one in events:
        if time == np.inf:
            continue
        session.advance(float(time))
        if not kind:
            made = program(wiring.num_hosts, (0, *pairs[one], nbytes[one]))
            handles[one] = session.add(made)
        elif one in handles:
            session.remove(handles.pop(one))
        else:
            gone[one] = np.inf  # it has not come yet
    kept = dict(handles)
    finish(session)
    paths = [[link for link in wiring.routes[tuple(pair)] if link >= 0] for pair in pairs]
    expected = ends_by_hand(list(zip(begin, paths, nbytes, strict=True)), gone, wiring.rate)
    for one, handle in kept.items():
        assert session.runs(handle).ends == pytest.approx([expected[one]], rel=1e-9)


@examples(60)
@seeds
def test_sessions_in_c_and_in_python_agree_while_programs_come_and_go(seed):
    sides = []
    for model in ("flows in C", "flows in Python"):
        case, handles, told = Case(model, seed), [], []
        session = case.session()
        for _ in range(12):
            what = case.draw.choice(["add", "remove", "until", "end"])
            if what == "add" or not handles:
                handles.append(session.add(case.program(str(case.draw.choice(REPEATS)))))
            elif what == "remove":
                session.remove(handles.pop(int(case.draw.integers(len(handles)))))
            else:
                until = session.now + float(case.draw.exponential(5e-5)) if what == "until" else None
                told.append(or_error(session.advance, until))
                if isinstance(told[-1], str):
                    break
            told.append(sorted(session.rates().handle.tolist()))
        count = len(session._entries)
        numbers = [session.now, *session.link_bytes(), *session.loads()]
        numbers += [time for handle in range(count) for time in session.runs(handle).ends]
        sides.append((told, numbers))
    assert sides[0][0] == sides[1][0]
    assert sides[0][1] == pytest.approx(sides[1][1], rel=1e-9, abs=1e-3)


# ---- what sessions tell ----


@pytest.mark.parametrize("model", MODELS)
def test_a_job_begins_because_another_one_ended(model):
    session, hosts = session_of(model, 3)
    first = session.add(program(3, (0, 0, 2, 4096e3)))
    session.add(program(3, (0, 1, 2, 8192e3)))
    assert session.advance() == [first]
    third = session.add(program(3, (0, 0, 2, 4096e3)))
    assert session.runs(third).begin == session.now
    assert session.advance(), "two that end together"
    finish(session)
    unit = 4096e3 / hosts
    assert [session.runs(handle).ends[0] for handle in range(3)] == pytest.approx(
        [2 * unit, 4 * unit, 4 * unit], rel=2e-3
    )


def session_of(model, hosts, **about):
    """A session on one switch, and the rate of its links."""
    if model == "packets":
        return PacketSession(network([hosts]), hosts=EAGER, **about), 4.096e9
    return FlowSession(one_switch(hosts, 0.0), compiled=model == "flows in C", **about), 1e9


@pytest.mark.parametrize("model", MODELS)
def test_every_repetition_and_every_named_step_is_timed(model):
    session, rate = session_of(model, 2)
    again = session.add(
        program(2, (0, 0, 1, 4096e2), (1, 1, 0, 8192e2), repeat=BACKGROUND, named={"there": 0, "back": 1, "same": 1})
    )
    session.advance(10 * 4096e2 * 3 / rate)
    runs, unit = session.runs(again), 4096e2 / rate
    assert len(runs.ends) in (9, 10)
    assert runs.seconds == pytest.approx(np.full(len(runs.ends), 3 * unit), rel=5e-3)
    begins = np.append(0.0, runs.ends)
    assert runs.steps["there"] - begins[: len(runs.steps["there"])] == pytest.approx(unit, rel=5e-3)
    assert (runs.steps["back"] == runs.ends).all()
    assert (runs.steps["same"] == runs.steps["back"]).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_program_until_all_ran_is_over_once_they_have(model):
    session, _ = session_of(model, 4)
    short, long = (
        session.add(program(2, (0, 0, 1, 4096e2), repeat=UNTIL_ALL_RAN)),
        session.add(program(4, (0, 2, 3, 4096e3))),
    )
    finish(session)
    session.advance(1.0)
    assert len(session.runs(short).ends) in (10, 11)
    assert len(session.runs(long).ends) == 1
    assert not session.link_bytes()[0] % 4096e2


@pytest.mark.parametrize("model", MODELS)
def test_rates_and_loads_are_those_of_now(model):
    session, rate = session_of(model, 4)
    one, other = (session.add(program(4, (0, source, 3, 4096e4))) for source in (0, 1))
    session.advance(1e-4)
    session.rates(), session.loads()
    session.advance(2e-3)
    found = session.rates()
    assert found.handle.tolist() == [one, other]
    assert found.message.tolist() == [0, 0]
    assert found.rate == pytest.approx([rate / 2] * 2, rel=0.02)
    loads = session.loads()
    assert sorted(loads[loads > 0]) == pytest.approx([rate / 2, rate / 2, rate], rel=0.02)
    session.remove(other)
    session.advance(2.1e-3)
    session.rates()
    session.advance(3e-3)
    left = session.rates()
    assert left.handle.tolist() == [one]
    assert left.rate == pytest.approx([rate], rel=0.02)


def test_packets_that_have_left_still_arrive_and_nothing_is_lost_when_a_program_is_removed():
    for about in ({}, {"queueing": "input"}, {"adapter": "in order"}, {"processors": 1}, {"rendezvous": "put"}):
        session = PacketSession(network([2, 5], (0, 1, 4.096e9)), hosts=Hosts(eager=8e3), settings=Settings(**about))
        one = session.add(packet_flows(7, (1, 3), (3, 0), nbytes=400 * MTU))
        crowd = session.add(packet_flows(7, (0, 2), (4, 2), (5, 2), (6, 2), nbytes=4000 * MTU, repeat=BACKGROUND))
        session.advance(100 * PACKET)
        session.remove(crowd)
        drained = session.now + 80 * PACKET
        session.advance(drained)
        before = session.link_bytes()
        session.advance()
        assert session.runs(one).ends[0] < 560 * PACKET  # 400 alone, 1,600 beside the crowd
        assert not session.runs(crowd).ends.size
        assert (session.link_bytes() - before)[session._tables.uplink[[4, 5, 6]]].sum() == 0
        counts = session.result().counts
        assert counts["lost_room"] == counts["in_buffers"] == 0
        assert counts["sent"] == counts["delivered"]


@pytest.mark.parametrize("model", MODELS)
def test_misuse_is_told(model):
    session, _ = session_of(model, 2)
    with pytest.raises(NetsimError, match="expecting a program that runs, got none of 0"):
        session.advance()
    session.advance(1.0)
    job = program(2, (0, 0, 1, 1e3))
    with pytest.raises(NetsimError, match=r"job: expecting a begin from 1 s on, got 0\.5"):
        session.add(job, 0.5)
    with pytest.raises(NetsimError, match=r"expecting a time from 1 s on, got 0\.5"):
        session.advance(0.5)
    with pytest.raises(NetsimError, match="expecting a time from 1 s on, got inf"):
        session.advance(np.inf)
    with pytest.raises(NetsimError, match=r"expecting a handle in range\(0\), got 0"):
        session.remove(0)
    handle = session.add(job)
    session.remove(handle)
    with pytest.raises(NetsimError, match="job: expecting a program that is there, got one removed"):
        session.remove(handle)
    rows = np.array([(0, 0, 1, 1, 8), (0, 1, 2, 1, 8), (1, 0, 1, 0, 8), (1, 1, 2, 0, 8)], dtype=float)
    stuck = session.add(type(job)([0, 1], *rows.T, name="stuck"))
    with pytest.raises(
        NetsimError, match="stuck: rank 0: expecting an end of its program, got a step that waits for ever"
    ):
        session.advance(2.0)
    session.remove(stuck)
    session.advance(3.0)
    with pytest.raises(NetsimError, match="halo: expecting a step with operations, got 7"):
        program(2, (0, 0, 1, 1e3), named={"halo": 7})
    typed: Session = session
    assert typed.now == 3.0


def test_a_named_step_stays_with_its_last_part():
    cut = program(2, (0, 0, 1, 1e3), (1, 1, 0, 1e3), compute=[(2, 0, 1e-3)], named={"back": 1, "work": 2}).cut(4)
    assert cut.named == {"back": 7, "work": 8}


def test_the_example_of_the_page_prints_what_the_page_shows(capsys):
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8").partition("## Sessions\n")[2]
    code, shown = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", page, re.DOTALL).groups()
    exec(compile(code, "docs/models.md", "exec"), {})
    assert capsys.readouterr().out == shown
