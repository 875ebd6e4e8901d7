"""The topology service: its answers equal those of the routes, whatever happens to its files and clients."""

import asyncio
import itertools
import json
import random
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import pick, raw, read, running, switches, wait_until
from tests.support import examples
from topompi.topology import FabricBuilder, Routes, TopologyInterface, compute_routes, load
from topompi.topology.client import ask, ask_line
from topompi.topology.service import state
from topompi.topology.service.bounds import Bounds
from topompi.topology.service.connection import Connection
from topompi.topology.service.generation import Generation
from topompi.topology.service.requests import FIELDS
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore

some_hosts = st.lists(st.integers(0, 63), min_size=1, max_size=12)


@examples(40)
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


@examples(40)
@given(numbers=some_hosts)
def test_lines_are_answered_with_the_switches_of_the_route_in_order(served, routes, numbers: list[int]) -> None:
    names = list(dict.fromkeys(pick(routes, numbers)))
    view = TopologyInterface.place(names, routes)
    lines = [f"query {a}:{b}" for a in names for b in names]
    answers = raw(served[1], ("\n".join(lines) + "\n").encode()).decode().splitlines()
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names))]
    assert answers == [" ".join([names[i], *switches(routes, view, i, j), names[j]]) for i, j in pairs]


@examples(25)
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
    with running(RouteStore(lambda: made)) as (_, address):
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
    assert set(answer) == {"id", "generation", "digest", "hosts", *fields}


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
        (b'{"request": "view", "fields": ["hops", "paths", "hops"]}', b"expecting each of them once, got hops again"),
        (b'{"request": "view", "fields": [' + b'"paths",' * 100_000 + b'"hops"]}', b"once, got paths again"),
        (b'{"request": "health", "fields": "' + b"x" * 5_000 + b'"}', b"field request: expecting a shorter line"),
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
    assert json.loads(answers[1]) == {"generation": 1, "digest": served[0].store.current.digest}


def test_no_request_reads_a_file(served, routes, tmp_path) -> None:
    secret = tmp_path / "hosts"
    secret.write_text(f"{routes.fabric.hosts[40]}\n")
    for hosts in (str(secret), [str(secret)], f"@{secret}", f"file://{secret}"):
        answer = ask(served[1], {"request": "view", "hosts": hosts})
        assert answer.get("kind") in ("HostError", "SourceError"), answer
        assert routes.fabric.hosts[40] not in answer["error"]


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


@examples(150)
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


TIGHT = Bounds(
    clients=40, line_bytes=1000, request_seconds=0.5, stall_seconds=0.5, idle_seconds=1.0, held_bytes=1 << 22
)


def test_slow_silent_and_greedy_clients_are_dropped_and_the_others_answered(routes, monkeypatch) -> None:
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.1)
    first = routes.fabric.hosts[0]
    with running(RouteStore(lambda: routes), TIGHT) as (service, address):
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
    service = Service(RouteStore(lambda: routes), "test", Bounds(stall_seconds=10))
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


def test_for_a_client_beyond_the_bound_the_longest_silent_one_is_told_to_go(routes) -> None:
    with running(RouteStore(lambda: routes), TIGHT) as (service, address):
        clients = [address.connect() for _ in range(TIGHT.clients)]
        wait_until(lambda: len(service.connections) == TIGHT.clients)
        clients[0].sendall(b"\n")
        assert clients[0].recv(99).startswith(b"error: expecting 'query A:B'")
        assert ask(address, {"request": "health"})["status"] == "ok"
        assert clients[1].recv(99) == b"error: expecting at most 40 clients, got one more\n"
        assert clients[1].recv(99) == b""
        clients[0].sendall(b"\n")
        assert clients[0].recv(99).startswith(b"error: expecting 'query A:B'")
        for client in clients:
            client.close()
        wait_until(lambda: not service.connections)
        assert ask(address, {"request": "health"})["status"] == "ok"


def test_a_client_beyond_its_rate_waits_and_loses_nothing(routes, monkeypatch) -> None:
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.2)
    first = routes.fabric.hosts[0]
    with running(RouteStore(lambda: routes), Bounds(rate=20)) as (_, address):
        began = time.monotonic()
        answers = raw(address, f"query {first}:{first}\n".encode() * 50)
        assert answers == f"{first} {first}\n".encode() * 50
        assert time.monotonic() - began > 0.2
