"""The repr of big values, which is short, and the completion of public names."""

import sys

import pytest

import topompi
from topompi import mapping, schedules, topology
from topompi.cli.app import main
from topompi.schedules import Model
from topompi.views.machine import machine_of
from topompi.views.network import network_of

LONGEST = 400  # characters of a repr: some lines of a terminal


def big_values():
    found = topology.load("stampede")
    job = topology.TopologyInterface.place([host for host in found.fabric.hosts[:200] for _ in range(4)], found.routes)
    network = network_of(job)
    schedule = schedules.make("allgather", "ring", network)
    analysis, machine = schedules.analyse(schedule, network, 64), machine_of(job)
    graph = mapping.CommunicationGraph.cartesian((20, 40), (True, True))
    time = schedules.cost(schedule, network, Model.preset("stampede"), 64)
    placed = mapping.Mapping.identity(machine, 800)
    return [
        found,
        found.fabric,
        found.routes,
        job,
        job.tree,
        job.levels,
        job.host_routes,
        network,
        schedule,
        analysis,
        time,
        machine,
        graph,
        placed,
    ]


def test_the_repr_of_every_big_value_is_short_and_says_how_big_it_is():
    for value in big_values():
        assert len(repr(value)) < LONGEST, type(value)
        assert any(sign.isdigit() for sign in repr(value)), type(value)


def test_a_summary_of_an_analysis_sums_up_its_messages():
    network = network_of(topology.TopologyInterface.place(["a", "b", "c", "d"]))
    schedule = schedules.make("allgather", "ring", network)
    said = schedules.analyse(schedule, network, 100).summary().splitlines()
    assert said[:2] == ["12 messages, 1,200 bytes, in 3 steps", "1 hop: 12 messages, 1,200 bytes"]
    assert "busiest link: 0, 300 bytes" in said


@pytest.mark.parametrize("module", [topompi, topology, schedules, mapping], ids=lambda one: one.__name__)
def test_completion_offers_every_public_name(module):
    assert set(module.__all__) <= set(dir(module))
    assert module is topompi or all(hasattr(module, name) for name in dir(module))  # topompi's need an MPI library


def test_in_a_slurm_job_commands_are_about_its_hosts_and_say_so(monkeypatch, capsys):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "h[0000,0005,0010]")
    asked = ["topompi", "topology", "show", "XGFT(2; 4,4; 1,2)"]
    shown = {}
    for options in ((), ("--hosts", "all"), ("--hosts", "h[0000-0001]")):
        monkeypatch.setattr(sys, "argv", [*asked, *options])
        with pytest.raises(SystemExit):
            main()
        shown[options] = capsys.readouterr()
    assert "its 3 hosts" in shown[()].out
    assert "SLURM_JOB_NODELIST" in shown[()].err
    assert "16 hosts on 4 leaf switches" in shown["--hosts", "all"].out
    assert "its 2 hosts" in shown["--hosts", "h[0000-0001]"].out
    assert not shown["--hosts", "all"].err + shown["--hosts", "h[0000-0001]"].err
