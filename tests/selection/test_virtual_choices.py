"""``topompi why`` says of a virtual placement that native runs, and what the model would choose on the network."""

import json

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support import examples
from topompi.cli.run.why import VIRTUAL_HOSTS
from topompi.cli.run.why import why as command
from topompi.mpi.execution.specs import NO_NEEDS
from topompi.mpi.selection.advisor import Advisor
from topompi.mpi.selection.choice import Choice
from topompi.mpi.selection.explanation import explain
from topompi.topology import TopologyInterface, load_routes
from topompi.views.jobshape import JobShape

SOURCE = "xgft:4,4;1,1@rate=1xSDR"  # 16 hosts on slow links, where the model leaves native


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
    assert ask(call="Alltoallv").startswith("Alltoallv of 262,144 bytes, predicted at 393,216: 16 ranks")
    assert "native runs by itself" in ask(call="gatherv", code=1)
    assert "alltoallw (docs/limits.md: non-blocking calls), got 'gathervv'" in ask(call="gathervv", code=1)


JOB = TopologyInterface.place([f"h{host:04}" for host in (0, 4, 1, 5, 8, 12, 2, 6)], load_routes(SOURCE))


@examples(40)
@given(st.sampled_from(["Bcast", "Allreduce", "Allgather", "Alltoall"]), st.integers(1, 1 << 21))
def test_why_gives_the_reason_and_times_that_a_communicator_has_for_the_size(method, nbytes):
    advisor = Advisor(JobShape(JOB, "", ""), {"TOPOMPI_TUNE": "off"})
    key = (method, nbytes.bit_length(), NO_NEEDS)
    ran = advisor.advise(key, 0, lambda _: True, measurable=False)
    said = explain(JOB, method, nbytes)
    assert isinstance(ran, Choice)
    assert said["algorithm"] == ran.algorithm
    assert said["reason"].startswith(ran.reason)
