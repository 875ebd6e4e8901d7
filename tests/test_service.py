"""The topology service: its answers are those of the routes themselves, whatever clients and files do to it."""

from __future__ import annotations

import asyncio
import itertools
import json
import lzma
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ROOT
from topompi.cli.topologyservice import is_local, query
from topompi.errors import HostError, ServiceError, SourceError
from topompi.topology import FabricBuilder, Routes, TopologyInterface, compute_routes, load
from topompi.topology.asking import Address, ask, ask_line
from topompi.topology.service import state
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.connection import Connection
from topompi.topology.service.generation import Generation
from topompi.topology.service.requests import FIELDS
from topompi.topology.service.state import Service
from topompi.topology.service.store import Store
from topompi.topology.service.watch import Watch
from topompi.topology.sources import is_input

FABRICS = ROOT / "osu_like_bench" / "fabrics"
REPORT, TABLES = FABRICS / "fattree64.ibnetdiscover.xz", FABRICS / "fattree64.lfts.xz"


def read(source: str | Path = REPORT, lfts: str | Path | None = TABLES) -> Routes:
    routes = load(source, lfts).routes
    assert routes is not None
    return routes


@pytest.fixture(scope="module")
def routes() -> Routes:
    return read()


@contextmanager
def running(
    store: Store, bounds: Bounds | None = None, watch: Watch | None = None
) -> Iterator[tuple[Service, Address]]:
    """A service in a thread of this process, at a port of its own."""
    service = Service(store, "test", bounds)
    loop = asyncio.new_event_loop()
    bound: list[int] = []
    begun, stopped = threading.Event(), asyncio.Event()

    async def live() -> None:
        server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0)
        bound.append(server.sockets[0].getsockname()[1])
        duties = [loop.create_task(service.look())]
        if watch is not None:
            duties.append(loop.create_task(service.follow(watch)))
        begun.set()
        await stopped.wait()
        server.close()
        await service.drain()
        for duty in duties:
            duty.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()))
    thread.start()
    assert begun.wait(10)
    try:
        yield service, Address("127.0.0.1", bound[0])
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(20)
        assert not thread.is_alive()
        loop.close()


@pytest.fixture(scope="module")
def served(routes: Routes) -> Iterator[tuple[Service, Address]]:
    with running(Store(lambda: routes)) as found:
        yield found


def raw(address: Address, data: bytes, seconds: float = 5.0) -> bytes:
    """All that a service answers to some bytes until it closes; the client sends no more."""
    with address.connect() as client:
        client.settimeout(seconds)
        with suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        found = b""
        with suppress(ConnectionError):
            while chunk := client.recv(1 << 16):
                found += chunk
        return found


def switches(routes: Routes, view: TopologyInterface, i: int, j: int) -> list[str]:
    links = view.get_network_path_matrix()[i, j]
    assert view.routes is not None
    fabric = view.routes.fabric
    return [fabric.vertex_id(int(vertex)) for vertex in fabric.link_target[links[links >= 0]][:-1]]


def pick(routes: Routes, numbers: list[int]) -> list[str]:
    return [routes.fabric.hosts[number % routes.fabric.num_hosts] for number in numbers]


some_hosts = st.lists(st.integers(0, 63), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(numbers=some_hosts)
def test_a_job_that_asks_a_service_sees_what_it_sees_in_the_files(served, routes, numbers: list[int]) -> None:
    names = pick(routes, numbers)
    wanted = TopologyInterface.place(names, routes)
    got = TopologyInterface.place(names, load(str(served[1]), hosts=names).routes)
    assert np.array_equal(got.hop_matrix, wanted.hop_matrix)
    assert np.array_equal(got.delay_matrix("rate"), wanted.delay_matrix("rate"), equal_nan=True)
    assert got.sharing_groups == wanted.sharing_groups
    assert [level.name for level in got.levels] == [level.name for level in wanted.levels]
    assert got.routes is not None
    assert wanted.routes is not None
    assert got.routes.engine == wanted.routes.engine
    for i in range(wanted.num_hosts):
        for j in range(wanted.num_hosts):
            assert switches(routes, got, i, j) == switches(routes, wanted, i, j)


@settings(max_examples=40, deadline=None)
@given(numbers=some_hosts)
def test_lines_are_answered_with_the_switches_of_the_route_in_order(served, routes, numbers: list[int]) -> None:
    names = list(dict.fromkeys(pick(routes, numbers)))
    view = TopologyInterface.place(names, routes)
    lines = [f"query {a}:{b}" for a in names for b in names]
    answers = raw(served[1], ("\n".join(lines) + "\n").encode()).decode().splitlines()
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    assert answers == [" ".join([names[i], *switches(routes, view, i, j), names[j]]) for i, j in pairs]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_single_routes_take_the_rails_that_views_take(seed: int) -> None:
    made = with_rails(random.Random(seed))
    for first, second in itertools.permutations(made.fabric.hosts, 2):
        view = TopologyInterface.place([first, second], made)
        assert list(Generation(1, made, 0.0).route(first, second)) == switches(made, view, 0, 1)


def with_rails(chooser: random.Random) -> Routes:
    """Four hosts of one to three rails, each rail at any of five switches in a row."""
    builder = FabricBuilder("rails")
    for switch in range(5):
        builder.add_switch(f"s{switch}")
    for host in range(4):
        for rail in range(chooser.randint(1, 3)):
            builder.add_adapter(f"a{host}{rail}", host=f"h{host}")
            builder.add_cable(f"a{host}{rail}", f"s{chooser.randrange(5)}", rate=1e9)
    for switch in range(4):
        builder.add_cable(f"s{switch}", f"s{switch + 1}", rate=1e9)
    return compute_routes(builder.build())


def test_routes_that_the_service_computed_reach_the_job_as_they_are() -> None:
    made = read("xgft:4,4;1,4", None)
    names = [made.fabric.hosts[number] for number in (0, 5, 9, 14)]
    with running(Store(lambda: made)) as (_, address):
        got = load(str(address), hosts=names).routes
    view, wanted = TopologyInterface.place(names, got), TopologyInterface.place(names, made)
    for i, j in ((0, 1), (1, 0), (2, 3), (3, 1)):
        assert switches(made, view, i, j) == switches(made, wanted, i, j)


def test_a_view_has_the_fields_that_were_asked_for(served, routes) -> None:
    names = pick(routes, [3, 40, 41])
    fields = ["hops", "paths", "leaves", "rates", "levels", "sharing"]
    answer = ask(served[1], {"request": "view", "hosts": names, "fields": fields, "id": 7})
    view = TopologyInterface.place(names, routes)
    assert (answer["id"], answer["generation"], answer["hosts"]) == (7, 1, names)
    assert answer["hops"] == view.hop_matrix.tolist()
    assert [[len(path) for path in row] for row in answer["paths"]] == [
        [int((path >= 0).sum()) for path in row] for row in view.get_network_path_matrix()
    ]
    assert answer["rates"] == view.host_routes.rates.tolist()
    assert set(answer) == {"id", "generation", "hosts", *fields}


def test_the_tree_is_that_of_all_hosts(served, routes) -> None:
    answer = ask(served[1], {"request": "tree"})
    tree = TopologyInterface.place(routes.fabric.hosts, routes).tree
    assert answer["parent"] == tree.parent.tolist()
    assert answer["height"] == tree.height.tolist()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"query h0000:nowhere", b"expecting a host of"),
        (b"query h0000", b"expecting 'query A:B'"),
        (b"query :", b"expecting 'query A:B'"),
        (b"\xff\xfe:\x00", b"expecting a request in UTF-8"),
        (b"{", b"expecting JSON"),
        (b"{}", b"field request: expecting one of view"),
        (b'{"request": "file", "path": "/etc/passwd"}', b"field request: expecting one of view"),
        (b'{"request": "view", "hosts": 3}', b"field hosts: expecting names or a host list"),
        (b'{"request": "view", "hosts": ["nowhere"]}', b'"kind":"HostError"'),
        (b'{"request": "view", "fields": ["secrets"]}', b"field fields: expecting some of"),
        (b'{"request": "view", "id": [1]}', b"field id: expecting"),
        (b'{"request": ' + b"[" * 100_000, b"nested"),
    ],
)
def test_a_request_that_is_not_as_wanted_is_told_why_and_the_next_one_answered(
    served, line: bytes, words: bytes
) -> None:
    answers = raw(served[1], line + b'\n{"request": "generation"}\n').splitlines()
    assert len(answers) == 2
    assert words in answers[0]
    assert json.loads(answers[1]) == {"generation": 1}


def test_no_request_reads_a_file(served, routes, tmp_path) -> None:
    secret = tmp_path / "hosts"
    secret.write_text(f"{routes.fabric.hosts[40]}\n")
    for hosts in (str(secret), [str(secret)], f"@{secret}", f"file://{secret}"):
        answer = ask(served[1], {"request": "view", "hosts": hosts})
        assert answer.get("kind") in ("HostError", "SourceError"), answer
        assert routes.fabric.hosts[40] not in answer["error"]


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=300))
def test_noise_neither_ends_the_service_nor_reaches_other_clients(served, routes, noise: bytes) -> None:
    raw(served[1], noise)
    first = routes.fabric.hosts[0]
    assert ask_line(served[1], f"query {first}:{first}") == f"{first} {first}"


some_words = st.sampled_from(
    ["view", "tree", "health", "generation", "counters", "fabric", "hops", "h0001", "n[1-3]", "[", ""]
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | some_words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(some_words | st.text(), inner, max_size=4),
    max_leaves=8,
)
requests = st.fixed_dictionaries(
    {"request": some_words | anything},
    optional={
        "hosts": anything | st.lists(st.sampled_from(["h0000", "h0001", "h0063", "nowhere"]), max_size=4),
        "fields": anything | st.lists(st.sampled_from(sorted(FIELDS)), max_size=4),
        "id": anything,
    },
)


@settings(max_examples=150, deadline=None)
@given(request=requests)
def test_every_request_gets_one_answer_with_the_generation(served, request: dict[str, Any]) -> None:
    answers = raw(served[1], json.dumps(request).encode() + b"\n").splitlines()
    assert len(answers) == 1
    answer = json.loads(answers[0])
    assert answer["generation"] == 1
    assert answer.get("kind", "RequestError") in ("RequestError", "HostError", "SourceError")
    assert not ({"id", "error"} <= set(answer)) or answer["id"] == request["id"]


def test_answers_come_in_the_order_of_the_requests(served, routes) -> None:
    first = routes.fabric.hosts[0]
    data = "".join(f'{{"request":"view","fields":["hops"],"id":{i}}}\nquery {first}:{first}\n' for i in range(5))
    answers = raw(served[1], data.encode()).decode().splitlines()
    assert [json.loads(answer)["id"] for answer in answers[::2]] == list(range(5))
    assert answers[1::2] == [f"{first} {first}"] * 5


def test_monitors_are_answered_in_http(served) -> None:
    page = raw(served[1], b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").decode()
    assert page.startswith("HTTP/1.1 200 OK\r\n")
    assert "\ntopompi_service_generation 1\n" in page
    assert raw(served[1], b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
    assert raw(served[1], b"GET /../etc/passwd HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")


# Clients that mean ill.

TIGHT = Bounds(
    clients=40, line_bytes=1000, request_seconds=0.5, stall_seconds=0.5, idle_seconds=1.0, held_bytes=1 << 22
)


def wait_until(condition, seconds: float = 8.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


def test_slow_silent_and_greedy_clients_are_dropped_and_the_others_answered(routes, monkeypatch) -> None:
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.1)
    first = routes.fabric.hosts[0]
    with running(Store(lambda: routes), TIGHT) as (service, address):
        half, silent, deaf = (address.connect() for _ in range(3))
        half.sendall(b"query h00")
        deaf.setblocking(False)
        request = b'{"request":"view","fields":["fabric"]}\n' * 20
        with suppress(BlockingIOError):
            while True:
                deaf.send(request)
        assert raw(address, b"x" * 5000).endswith(b"expecting at most 1,000 bytes a line, got more\n")
        assert ask_line(address, f"query {first}:{first}") == f"{first} {first}"
        wait_until(lambda: service.counters.dropped == 3)
        wait_until(lambda: not service.connections)
        assert service.held == 0
        for client in (half, silent, deaf):
            client.close()


class Untaken(asyncio.Transport):
    """A transport whose client decides how much waits to be taken."""

    size, aborted = 0, False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True


def test_a_client_that_takes_a_large_answer_slowly_is_dropped_only_when_it_stops(routes) -> None:
    service = Service(Store(lambda: routes), "test", Bounds(stall_seconds=10))
    connection, transport = Connection(service), Untaken()
    connection.connection_made(transport)
    transport.size = 20 << 20
    connection.pause_writing()
    assert service.held == 20 << 20
    now = time.monotonic()
    for _ in range(9):
        now, transport.size = now + 9, transport.size - (2 << 20)
        connection.look(now)
        assert not transport.aborted
    for _ in range(11):
        now, transport.size = now + 1, transport.size - 1000
        connection.look(now)
    assert transport.aborted
    connection.connection_lost(None)
    assert service.held == 0


def test_clients_beyond_the_bound_are_told_so(routes) -> None:
    with running(Store(lambda: routes), TIGHT) as (service, address):
        clients = [address.connect() for _ in range(TIGHT.clients)]
        wait_until(lambda: len(service.connections) == TIGHT.clients)
        assert raw(address, b"") == b"error: expecting at most 40 clients, got one more\n"
        for client in clients:
            client.close()
        wait_until(lambda: not service.connections)
        assert ask(address, {"request": "health"})["status"] == "ok"


def test_a_client_beyond_its_rate_waits_and_loses_nothing(routes, monkeypatch) -> None:
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.2)
    first = routes.fabric.hosts[0]
    with running(Store(lambda: routes), Bounds(rate=20)) as (_, address):
        began = time.monotonic()
        answers = raw(address, f"query {first}:{first}\n".encode() * 50)
        assert answers == f"{first} {first}\n".encode() * 50
        assert time.monotonic() - began > 0.2


# Generations.


def test_a_watched_source_is_read_again_when_it_is_whole_and_only_then(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(state, "WATCH_SECONDS", 0.1)
    report, tables = tmp_path / "report.xz", tmp_path / "tables.xz"
    shutil.copy(REPORT, report)
    shutil.copy(TABLES, tables)
    watch = Watch([report, tables])
    first, other = (read().fabric.hosts[number] for number in (0, 40))
    with running(Store(lambda: read(report, tables)), watch=watch) as (service, address):
        before = ask_line(address, f"query {first}:{other}")
        tables.write_bytes(TABLES.read_bytes()[:1000])
        wait_until(lambda: service.store.problem != "")
        health = ask(address, {"request": "health"})
        assert (health["status"], health["generation"]) == ("stale", 1)
        assert "tables.xz" in health["problem"]
        assert ask_line(address, f"query {first}:{other}") == before
        shutil.copy(TABLES, tables)
        wait_until(lambda: service.store.current.number == 2)
        assert ask(address, {"request": "health"})["status"] == "ok"


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


def test_what_changed_while_it_was_read_is_thrown_away(routes) -> None:
    store = Store(lambda: routes)
    assert not store.reload(lambda: False)
    assert store.current.number == 1
    assert store.reload()
    assert store.current.number == 2


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
    store = Store(lambda: made[next(turn) % 2])
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


def reversed_spines(routes: Routes) -> Routes:
    """The same fabric, with the links up of each leaf in another order."""
    fabric = routes.fabric
    table = routes.next_link.copy()
    for leaf in np.unique(fabric.adapter_leaf):
        up = [link for link in fabric.switch_links if fabric.link_source[link] == fabric.num_adapters + leaf]
        other = dict(zip(up, np.roll(up, 1), strict=True))
        for adapter in range(fabric.num_adapters):
            link = int(table[0, leaf, adapter])
            table[0, leaf, adapter] = other.get(link, link)
    return Routes(fabric, "another order", table)


# The client.


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tcp://h:1", Address("h", 1)),
        ("h:65535", Address("h", 65535)),
        ("tcp://[::1]:7", Address("::1", 7)),
        ("unix:/run/t.sock", Address(path="/run/t.sock")),
        ("unix:///run/t.sock", Address(path="/run/t.sock")),
    ],
)
def test_addresses_are_read_and_written(text: str, wanted: Address) -> None:
    assert Address.parse(text) == wanted
    assert Address.parse(str(wanted)) == wanted


@pytest.mark.parametrize("text", ["tcp://", "h", "h:", "h:65536", ":1", "a:b:1", "tcp://h:1/x", "unix:", "h h:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="expecting tcp://HOST:PORT or unix:PATH, got"):
        Address.parse(text)


def test_a_dead_service_is_an_error_in_time() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        port = placeholder.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(ServiceError, match="expecting a topology service, got: Connection refused"):
            load(f"tcp://127.0.0.1:{port}", hosts=["h"])
        assert time.monotonic() - began < 2


@contextmanager
def impostor(answers: list[bytes]) -> Iterator[Address]:
    """A server that sends some bytes to each client in turn, then nothing; without bytes it closes at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def live() -> None:
            for answer in answers:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                client.recv(1 << 16)
                client.sendall(answer)
                held.append(client)
                if not answer:
                    client.close()

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)  # ends what waits for a client
        thread.join(5)
        for client in held:
            client.close()


def test_a_first_try_that_fails_is_followed_by_a_second() -> None:
    with impostor([b"", b'{"status": "ok"}\n']) as address:
        assert ask(address, {"request": "health"}) == {"status": "ok"}


def test_a_service_that_never_ends_its_answer_is_given_up() -> None:
    with impostor([b'{"half', b'{"half']) as address:
        began = time.monotonic()
        with pytest.raises(ServiceError, match="no answer in time"):
            ask(address, {"request": "health"}, 0.3)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"[]\n", "expecting an object of JSON, got list"),
        (b"\xff\n", "expecting JSON in UTF-8"),
        (b"{}\n", "field fabric: expecting a value, got none"),
        (b'{"fabric": {"format": "x"}}\n', "field format: expecting"),
        (b'{"fabric": 3}\n', "field format: expecting"),
    ],
)
def test_an_answer_that_is_not_as_wanted_is_refused_with_the_field(answer: bytes, words: str) -> None:
    with impostor([answer, answer]) as address, pytest.raises(SourceError, match=words):
        load(str(address), hosts=["h"])


def test_hosts_that_the_service_does_not_know_are_an_error_of_hosts(served) -> None:
    with pytest.raises(HostError, match=r"expecting some of its 64 hosts .* but 1 of 2 are not: nowhere"):
        load(str(served[1]), hosts=["h0001", "nowhere"])


# The command.


@contextmanager
def command(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`topompi topology serve` as a process, and its first event."""
    words = [sys.executable, "-m", "topompi", "topology", "serve", *map(str, arguments)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT) as process:
        try:
            assert process.stderr is not None
            event = json.loads(process.stderr.readline())
            yield process, event
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "head")),
    ],
)
def test_addresses_beyond_this_host_are_told_apart(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_a_question_about_health_fails_where_the_service_is_stale(routes, capsys) -> None:
    with running(Store(lambda: routes)) as (service, address):
        query(None, str(address), health=True, counters=False)
        assert json.loads(capsys.readouterr().out)["status"] == "ok"
        service.store.problem = "tables break off"
        assert raw(address, b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        with pytest.raises(SystemExit, match="1"):
            query(None, str(address), health=True, counters=False)
        assert json.loads(capsys.readouterr().out)["problem"] == "tables break off"
        query(None, str(address), health=False, counters=True)
        assert json.loads(capsys.readouterr().out)["requests"] == 3
        with pytest.raises(ServiceError, match=r"expecting a host of .*, got 'nowhere'"):
            query("nowhere:h0000", str(address), health=False, counters=False)
        with pytest.raises(ServiceError, match="expecting one of A:B, --health and --counters"):
            query("a:b", str(address), health=True, counters=False)


def run_query(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "topompi", "topology", "query", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=ROOT)


def test_the_command_serves_reads_again_and_drains(tmp_path, routes) -> None:
    path = tmp_path / "topology.sock"
    first, other = routes.fabric.hosts[0], routes.fabric.hosts[40]
    with command(REPORT, "--lfts", TABLES, "--unix", path) as (process, event):
        assert event["event"] == "serving"
        server = event["addresses"][0]
        done = run_query(f"{first}:{other}", "--server", server)
        view = TopologyInterface.place([first, other], routes)
        assert done.stdout.split() == [first, *switches(routes, view, 0, 1), other]
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(Address.parse(server), {"request": "generation"})["generation"] == 2)
        client = Address.parse(server).connect()
        client.sendall(b'{"request": "view"}\n')
        client.settimeout(10)
        received = client.recv(1)
        process.send_signal(signal.SIGTERM)
        while chunk := client.recv(1 << 16):
            received += chunk
        assert json.loads(received)["generation"] == 2
        assert process.wait(10) == 0
        assert not path.exists()
        client.close()


def test_a_service_that_was_killed_is_back_at_its_addresses_and_its_clients_with_it(tmp_path, routes) -> None:
    path = tmp_path / "topology.sock"
    with command(REPORT, "--lfts", TABLES, "--unix", path, "--listen", "127.0.0.1:0") as (process, event):
        port = event["addresses"][1].rpartition(":")[2]
        process.kill()
        process.wait(10)
    assert path.exists()
    with command(REPORT, "--lfts", TABLES, "--unix", path, "--listen", f"127.0.0.1:{port}") as (_, event):
        for server in event["addresses"]:
            assert load(server, hosts=routes.fabric.hosts[:2]).fabric.num_hosts == 2
        words = [sys.executable, "-m", "topompi", "topology", "serve", str(REPORT), "--unix", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert f"unix:{path}: expecting a path that no service listens at" in done.stderr


def test_a_source_that_cannot_be_read_is_one_line_and_exit_code_1() -> None:
    words = [sys.executable, "-m", "topompi", "topology", "serve", "/no/such/file"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
