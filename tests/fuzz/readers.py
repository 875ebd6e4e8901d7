"""Every reader of the project, with what a user does next: what was accepted must not fail later."""

import io
import os
import re
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path

import numpy as np

from osu_like_bench.compare import SideTimes, _read, compare_records
from osu_like_bench.emulate import records
from tests.fuzz import colocated
from topompi.cli.terminal import console
from topompi.cli.topology.tables import draw_summary, draw_tree
from topompi.errors import TopompiError
from topompi.inputs.hostlist import compress, read_hosts
from topompi.inputs.slurm.nodes import read_closed
from topompi.inputs.slurm.running import read_running
from topompi.machine.jobs import Cluster, read_workload
from topompi.machine.jobs.now import offer, remarks
from topompi.mapping.machine import Machine
from topompi.mapping.rankfiles import WRITERS, read_mapping, write_mapping
from topompi.mapping.readers import read_graph
from topompi.mpi.execution.specs import Needs
from topompi.mpi.selection.memory import VerdictFile
from topompi.mpi.selection.rules import Rules
from topompi.mpi.tuning.ompi_rules import of_records
from topompi.mpi.tuning.record import TuneRecord
from topompi.schedules import check, make
from topompi.schedules.analysis.model import Model
from topompi.schedules.exports.jsonio import from_json, to_json
from topompi.schedules.network import Network
from topompi.topology import Report, TopologyInterface, load
from topompi.topology.hostnaming import naming_of
from topompi.topology.inside.cpus import write_cpu_list
from topompi.topology.inside.hwlocxml import read_file
from topompi.topology.inspection import compare
from topompi.topology.sources import fabricjson
from topompi.topology.summary import summarise
from topompi.views.cluster import cluster_of
from topompi.views.jobshape import JobShape
from topompi.views.machine import machine_of
from topompi.views.network import network_of
from topompi.views.picture.fabricscene import fabric_scene
from topompi.views.picture.writers import write

__all__ = ["FABRIC", "READERS", "job", "network"]

FABRIC = "xgft:4,2;1,2"
MOST_HOSTS = 200  # whose interface is built
MOST_SHOWN = 64  # that are drawn
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@cache
def network() -> Network:
    """Three ranks on three hosts, as the schedules that are read want it."""
    interface = TopologyInterface.place(["h0000", "h0001", "h0004"], load(FABRIC).routes)
    return network_of(interface)


@cache
def job() -> JobShape:
    """A job on that fabric."""
    return JobShape(TopologyInterface.place(["h0000", "h0001", "h0004"], load(FABRIC).routes), "Open MPI v5.0.7", "m")


def topology(path: Path) -> None:
    partial = Report(partial=True)
    for report in (Report(), partial):
        try:
            discovery = load(path, report=report)
        except TopompiError:
            if report is partial:
                raise
            continue
        assert discovery.routes is not None
        hosts = discovery.rank_hosts or discovery.fabric.hosts
        interface = TopologyInterface.place(hosts[:MOST_HOSTS], discovery.routes, source=str(path))
        _ = interface.levels, interface.describe(), interface.get_avg_hosts_per_leaf_switch()
        machine_of(interface)
        fabricjson.write(discovery.fabric, discovery.routes)
        if len(interface.hosts) <= MOST_SHOWN:
            shown(interface, path)
            assert not compare(discovery.routes, discovery.routes)
            with suppress(TopompiError):  # tables may lack routes, and hosts may have no adapter at a switch
                offer(1, cluster_of(discovery.routes))
        if report is not partial:
            return


def shown(interface: TopologyInterface, path: Path) -> None:
    """What is printed has no control characters, a picture is sound XML, and a link in its place is not followed."""
    assert interface.routes is not None
    out = io.StringIO()
    with redirect_stdout(out):
        screen = console()
        draw_summary(screen, summarise(interface.routes, interface))
        draw_tree(screen, interface)
    assert not CONTROL.search(out.getvalue()), out.getvalue()
    victim, picture = path.with_name("victim"), path.with_name("f.svg")
    victim.write_text("kept")
    picture.symlink_to(victim)
    write(fabric_scene(interface.routes, str(path), None, None), picture)
    ElementTree.parse(picture)
    assert victim.read_text() == "kept"
    picture.unlink()


def tables(path: Path) -> None:
    """Forwarding tables beside the fabric that they are for, which a file of the same folder holds."""
    routes = load(path.parent.parent / "fabric", path).routes
    assert routes is not None
    _ = TopologyInterface.place(routes.fabric.hosts[:MOST_HOSTS], routes).levels


def graph(path: Path) -> None:
    found = read_graph(path, notes=[])
    if found.size <= 4096:
        found.undirected()


def monitoring(path: Path) -> None:
    graph(path.rename(path.with_name("run.0.prof")))


def rank_file(path: Path) -> None:
    machine = Machine.tree(["h0", "h1", "h2"], [2, 2, 2], np.zeros((0, 3)), [4, 1])
    found = read_mapping(path, machine)
    for form in WRITERS:
        try:
            write_mapping(found, form)
        except TopompiError:  # not every format says every mapping
            continue


def alone(path: Path) -> None:
    """A rank file whose own header says for which hosts it is."""
    write_mapping(read_mapping(path), "json")


def rules(path: Path) -> None:
    found = Rules.read(path)
    found.first("Allreduce", 1024, job())
    assert Rules.parse(found.to_json()).rules == found.rules


def schedule(path: Path) -> None:
    made = make("alltoall", str(path.rename(path.with_suffix(".json"))), network())
    check(from_json(to_json(made)))


def memory(path: Path) -> None:
    memory = VerdictFile(job(), path.parent)
    path.rename(memory.path)
    memory.recall(("Allreduce", 1024, Needs(order=True)))
    assert isinstance(memory.read(), dict)


def model(path: Path) -> None:
    costs = Model.from_measured(str(path)).by_hops(9)
    assert all(np.isfinite(one).all() for one in costs)


def tune_record(path: Path) -> None:
    record = TuneRecord.read(path)
    for one in record.results:
        record.times(one.method, one.algorithm)
    with suppress(TopompiError):  # it wants several runs
        of_records([record])


def bench_record(path: Path) -> None:
    record = _read(path)
    series = SideTimes.choose(str(path), record, "topompi")
    table = compare_records(series, series)
    assert table.to_json()
    assert list(table.lines())


def names(path: Path) -> None:
    naming_of(str(path), None)


def running(path: Path) -> None:
    jobs = read_running(path)
    remarks(jobs, ["n0"], "m", np.array([8]))
    inside = [job for job in jobs if set(job.hosts) <= {"n0", "n1"}]
    offer(1, Cluster.regular(2, 2).with_slots(8), inside, "shared", share=True)


def closed(path: Path) -> None:
    read_closed(str(path))


def workload(path: Path) -> None:
    for arrivals in (False, True):
        read_workload(path, 4, partial=arrivals, arrivals=arrivals)


def hosts(path: Path) -> None:
    compress(read_hosts(str(path)))


def emulated(path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    (folder / "net").mkdir()
    shutil.move(path, folder / "net" / records.FILE)
    os.environ["TOPOMPI_EMULATE_STATE"] = str(folder)
    for one in records.states():
        _ = one.namespaces, one.in_use


def inside(path: Path) -> None:
    found = read_file(path)
    assert found.cpus
    found.domains(found.cpus)
    write_cpu_list(found.cpus)


READERS: dict[str, Callable[[Path], None]] = {
    "topology": topology,
    "tables": tables,
    "graph": graph,
    "monitoring": monitoring,
    "rank file": rank_file,
    "rank file alone": alone,
    "rules": rules,
    "schedule": schedule,
    "memory": memory,
    "model": model,
    "tune record": tune_record,
    "bench record": bench_record,
    "hosts": hosts,
    "names": names,
    "running": running,
    "closed": closed,
    "workload": workload,
    "inside": inside,
    "emulated": emulated,
    **colocated.READERS,
}
