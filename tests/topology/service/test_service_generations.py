"""Changes of a topology service's files: it serves whole generations, one after another."""

import asyncio
import itertools
import lzma
import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.services import REPORT, TABLES, raw, read, reversed_spines, running, switches, wait_until
from topompi.errors import ServiceError
from topompi.machine.daemon.commands import run_command
from topompi.machine.daemon.watch import Watch
from topompi.topology import Routes, TopologyInterface, load, reread
from topompi.topology.client import ask, ask_line
from topompi.topology.service import state
from topompi.topology.service.digest import digest_of
from topompi.topology.service.generation import Generation
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore
from topompi.topology.sources import fabricjson, is_input


def test_a_watched_source_is_read_again_when_it_is_whole_and_only_then(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(state, "WATCH_SECONDS", 0.1)
    made, source = read("xgft:4,4;1,4", None), tmp_path / "fabric.json"
    both = [Routes(made.fabric, "tables", made.next_link), reversed_spines(made)]
    texts = [fabricjson.write(routes.fabric, routes) for routes in both]
    source.write_text(texts[0])
    first, other = made.fabric.hosts[0], made.fabric.hosts[9]
    answers = [" ".join([first, *Generation(1, routes, 0.0).route(first, other), other]) for routes in both]
    assert answers[0] != answers[1]
    watch = Watch([source])
    with running(RouteStore(lambda: read(source, None)), watch=watch) as (service, address):
        assert ask_line(address, f"query {first}:{other}") == answers[0]
        source.write_text(texts[1][: len(texts[1]) // 2])
        wait_until(lambda: service.store.problem != "")
        health = ask(address, {"request": "health"})
        assert (health["status"], health["generation"]) == ("stale", 1)
        assert "fabric.json" in health["problem"]
        assert ask_line(address, f"query {first}:{other}") == answers[0]
        source.write_text(texts[1])
        wait_until(lambda: service.store.current.number == 2)
        assert ask(address, {"request": "health"})["status"] == "ok"
        assert ask_line(address, f"query {first}:{other}") == answers[1]


def test_files_are_due_once_they_have_changed_and_are_at_rest(tmp_path) -> None:
    file = tmp_path / "tables"
    file.write_text("a")
    watch = Watch([file])
    assert not watch.is_due()
    for size in (2, 3, 4):  # somebody is writing
        file.write_text("a" * size)
        assert not watch.is_due()
    assert watch.is_due()
    watch.take()
    assert watch.is_unchanged()
    assert not watch.is_due()
    file.unlink()
    assert not watch.is_unchanged()
    assert not watch.is_due()
    assert watch.is_due()


def test_a_log_that_grows_beside_the_tables_does_not_keep_them_from_being_read(tmp_path) -> None:
    log, tables = tmp_path / "opensm.log", tmp_path / "opensm-lfts.dump"
    log.write_text("line\n")
    watch = Watch([tmp_path], is_input)
    assert not watch.is_due()
    tables.write_bytes(lzma.decompress(TABLES.read_bytes()))
    due = []
    for _ in range(3):
        with log.open("a") as end:
            end.write("line\n")
        due.append(watch.is_due())
    assert due == [False, True, True]
    watch.take()
    tables.write_bytes(b"")  # as OpenSM opens it again
    assert not watch.is_unchanged()


def test_what_changed_while_it_was_read_is_thrown_away() -> None:
    made = read("xgft:4,4;1,4", None)
    said = iter([made, reversed_spines(made), reversed_spines(made)])
    store = RouteStore(lambda: next(said))
    assert not store.reload(lambda: False)
    assert store.current.number == 1
    assert store.reload()
    assert store.current.number == 2


def test_a_source_that_says_the_same_again_is_the_same_generation() -> None:
    said = iter([read(), read(), read(REPORT, None)])
    store = RouteStore(lambda: next(said))
    store.problem = "it could not be read"
    assert store.reload()
    assert (store.current.number, store.problem) == (1, "")
    assert store.reload()
    assert store.current.number == 2


def test_a_running_job_sees_that_its_routes_changed_and_reads_them_again() -> None:
    made = read("xgft:4,4;1,4", None)
    said = iter([made, reversed_spines(made)])
    store = RouteStore(lambda: next(said))
    names = [made.fabric.hosts[i] for i in (0, 9, 0, 5)]
    with running(store) as (_, address):
        found = load(str(address), hosts=names)
        assert found.routes is not None
        old = replace(TopologyInterface.place(names, found.routes), served=found.served)
        assert old.served is not None
        assert old.served.is_current()
        store.reload()
        assert not old.served.is_current()
        new = reread(old)
        assert new.served is not None
        assert new.served.is_current()
    with pytest.raises(ServiceError, match="expecting a topology service"):
        new.served.is_current()
    assert new.hosts == old.hosts
    assert np.array_equal(new.rank_host, old.rank_host)
    assert np.array_equal(new.hop_matrix, old.hop_matrix)
    wanted = TopologyInterface.place(names, reversed_spines(made))
    for i, j in itertools.permutations(range(3), 2):
        assert switches(made, new, i, j) == switches(made, wanted, i, j)
    assert any(switches(made, new, i, j) != switches(made, old, i, j) for i, j in itertools.permutations(range(3), 2))
    with pytest.raises(ServiceError, match="expecting a topology from a service, got one from"):
        reread(wanted)


def test_a_service_that_was_started_again_over_the_same_files_has_the_same_digest(routes) -> None:
    first, again = RouteStore(lambda: routes).current, RouteStore(read).current
    assert first.digest == again.digest
    table, rate = routes.next_link.copy(), routes.fabric.link_rate.copy()
    table[0, 3, 7] = -1
    rate[5] *= 2
    others = [
        Routes(routes.fabric, routes.engine, table),
        Routes(replace(routes.fabric, link_rate=rate), routes.engine, routes.table),
        Routes(routes.fabric, "another", routes.table),
    ]
    assert len({first.digest, *(digest_of(other) for other in others)}) == 4


def test_a_view_and_lines_sent_together_come_from_whole_generations() -> None:
    """Each generation routes all pairs over spines of its own: an answer of both would be seen."""
    made = [read("xgft:4,4;1,4", None), reversed_spines(read("xgft:4,4;1,4", None))]
    hosts = made[0].fabric.hosts
    lines = [f"query {hosts[i]}:{hosts[j]}" for i in (0, 1, 2, 3) for j in (5, 9, 14)]
    wanted = []
    for routes in made:
        generation = Generation(1, routes, 0.0)
        wanted.append([" ".join([a, *generation.route(a, b), b]) for a, b in (x[6:].split(":") for x in lines)])
    assert wanted[0] != wanted[1]
    turn = itertools.count()
    store = RouteStore(lambda: made[next(turn) % 2])
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.001):
            store.reload()

    with running(store) as (_, address):
        writer = threading.Thread(target=write)
        writer.start()
        try:
            data = ("\n".join(lines) + "\n").encode()
            seen = [raw(address, data).decode().splitlines() for _ in range(60)]
        finally:
            stop.set()
            writer.join()
    assert all(answers in wanted for answers in seen)
    assert wanted[0] in seen
    assert wanted[1] in seen


def test_a_command_writes_the_files_again_and_its_failure_is_part_of_health(tmp_path, routes) -> None:
    report = tmp_path / "report"
    shutil.copy(REPORT, report)
    watch, service = Watch([report]), Service(RouteStore(lambda: routes), "test")

    async def once(command: str) -> None:
        service.command_problem = "not yet run"
        task = asyncio.create_task(service.refresh(["sh", "-c", command], 0.5))
        while service.command_problem == "not yet run":
            await asyncio.sleep(0.02)
        task.cancel()

    asyncio.run(once("echo no rights >&2; exit 3"))
    said = "sh: expecting exit code 0, got 3: no rights"
    assert (service.health()["status"], service.health()["problem"]) == ("stale", said)
    assert watch.is_unchanged()
    asyncio.run(once(f"echo more >> {report}"))
    assert not watch.is_unchanged()
    assert service.health()["status"] == "ok"


def test_a_command_that_is_none_or_does_not_end_is_told_of() -> None:
    none = asyncio.run(run_command(["/no/such/program"], 5))
    assert none == "/no/such/program: expecting a program, got: No such file or directory"
    assert asyncio.run(run_command(["sleep", "60"], 0.1)) == "sleep: expecting an end within 0.1 seconds, got none"
