"""``topompi why`` says of a virtual placement that native runs, and what the model would choose on the network."""

import json

from typer.testing import CliRunner

from topompi.cli.run.why import VIRTUAL_HOSTS
from topompi.cli.run.why import why as command

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
    assert ask(call="Alltoallv").startswith("Alltoallv of 262,144 bytes: 16 ranks")
    assert "native runs by itself" in ask(call="gatherv", code=1)
    assert "alltoallw, got 'gathervv'" in ask(call="gathervv", code=1)
