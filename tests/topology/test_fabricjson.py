"""fabric.json: writing and reading lose nothing, and an error names the wrong field."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.errors import FabricError, SourceError
from topompi.inputs import InputFile
from topompi.topology.builder import FabricBuilder
from topompi.topology.discovery import Discovery, Report
from topompi.topology.fabric import Fabric
from topompi.topology.routes import Routes
from topompi.topology.sources import fabricjson

NAN = float("nan")


def text_of(content: str) -> InputFile:
    return InputFile("f", lambda: io.BytesIO(content.encode("utf-8", "surrogatepass")))


def read(content: str) -> Discovery:
    text = text_of(content)
    assert fabricjson.recognise(text.head())
    return fabricjson.read([text], Report())


quantities = st.one_of(st.just(NAN), st.floats(0, allow_infinity=False, allow_nan=False))


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Any vertices and links, parallel ones and loops included: the format need not make sense of them."""
    ids = draw(st.lists(st.text(max_size=8), unique=True, max_size=9))
    adapters = ids[: draw(st.integers(0, len(ids)))]
    switches = ids[len(adapters) :]
    hosts = draw(st.lists(st.text(max_size=8), unique=True, min_size=min(1, len(adapters)), max_size=5))
    links = draw(st.integers(0, 12)) if ids else 0

    def column(values: st.SearchStrategy[Any], length: int, dtype: type) -> Any:
        return np.array(draw(st.lists(values, min_size=length, max_size=length)), dtype=dtype)

    vertices, ports = st.integers(0, max(len(ids) - 1, 0)), st.integers(0, 65_535)
    return Fabric(
        name=draw(st.text()),
        hosts=tuple(hosts),
        adapter_ids=tuple(adapters),
        adapter_host=column(st.integers(0, max(len(hosts) - 1, 0)), len(adapters), np.int32),
        switch_ids=tuple(switches),
        switch_names=tuple(draw(st.lists(st.text(), min_size=len(switches), max_size=len(switches)))),
        link_source=column(vertices, links, np.int32),
        link_target=column(vertices, links, np.int32),
        link_source_port=column(ports, links, np.int32),
        link_target_port=column(ports, links, np.int32),
        link_rate=column(quantities, links, np.float64),
        link_latency=column(quantities, links, np.float64),
    )


def same(first: Fabric, second: Fabric) -> None:
    for name in Fabric.__dataclass_fields__:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            assert one == other, name


def random_tables(fabric: Fabric, paths: int, seed: int) -> Routes:
    """Tables whose entries leave their own switch, or are -1."""
    rng = np.random.default_rng(seed)
    table = np.full((paths, fabric.num_switches, fabric.num_adapters), -1, dtype=np.int32)
    for switch in range(fabric.num_switches):
        leaving = np.flatnonzero(fabric.link_source == fabric.num_adapters + switch)
        table[:, switch] = rng.choice([-1, *leaving], size=table[:, switch].shape)
    return Routes(fabric, "forwarding tables", table)


@given(fabric=fabrics(), indent=st.sampled_from([None, 1]))
def test_a_fabric_survives_the_round_trip(fabric: Fabric, indent: int | None) -> None:
    discovery = read(fabricjson.write(fabric, indent=indent))
    same(fabric, discovery.fabric)
    assert discovery.routes is None


@given(fabric=fabrics(), paths=st.integers(1, 3), seed=st.integers(0, 9))
def test_routes_of_tables_survive_the_round_trip(fabric: Fabric, paths: int, seed: int) -> None:
    routes = random_tables(fabric, paths, seed)
    discovery = read(fabricjson.write(fabric, routes))
    same(fabric, discovery.fabric)
    assert discovery.routes is not None
    assert discovery.routes.engine == routes.engine
    assert discovery.routes.fabric is discovery.fabric
    assert discovery.routes.next_link.dtype == np.int32
    np.testing.assert_array_equal(discovery.routes.next_link, routes.next_link)


@given(fabric=fabrics())
def test_the_text_is_strict_json_in_ascii(fabric: Fabric) -> None:
    content = fabricjson.write(fabric)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(content, parse_constant=refuse)["format"] == "topompi fabric"
    assert content.isascii()


def small_fabric(rate: float = 4e9) -> Fabric:
    builder = FabricBuilder("small")
    builder.add_switch("S0", "first")
    builder.add_switch("S1")
    for adapter, switch in (("A0", "S0"), ("A1", "S1")):
        builder.add_adapter(adapter, "host-" + adapter)
        builder.add_cable(adapter, switch, 1, 1, rate=rate)
    builder.add_cable("S0", "S1", 2, 2)
    return builder.build()


def small_routes(engine: str = "tables") -> Routes:
    return Routes(small_fabric(), engine, np.array([[[1, 4], [5, 3]]], dtype=np.int32))


def test_computed_routes_are_kept_by_name_only() -> None:
    content = fabricjson.write(small_fabric(), small_routes("computed: shortest paths"))
    assert json.loads(content)["routes"] == {"engine": "computed: shortest paths"}
    assert read(content).routes is None


def test_an_infinite_rate_is_refused() -> None:
    with pytest.raises(FabricError) as caught:
        fabricjson.write(small_fabric(float("inf")))
    assert str(caught.value) == "link 0: expecting a finite rate, got inf"


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set a dotted field; without the value ``...`` the field goes."""

    def apply(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place: Any = document
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        key = int(last) if isinstance(place, list) else last
        if value is ...:
            del place[key]
        else:
            place[key] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "field version: expecting 1 to 1, as this topompi reads, got 2"),
        ("version", 0, "field version: expecting 1 to 1, as this topompi reads, got 0"),
        ("version", "1", "field version: expecting a value of type int, got str"),
        ("version", True, "field version: expecting a value of type int, got bool"),
        ("name", ..., "field name: expecting a value of type str, got none"),
        ("hosts", ..., "field hosts: expecting a value of type list, got none"),
        ("hosts", {}, "field hosts: expecting a value of type list, got dict"),
        ("hosts.1", 7, "field hosts[1]: expecting a list of strings, got int"),
        ("hosts.1", "host-A0", "field hosts: expecting each value once, got 'host-A0' twice"),
        ("adapters", [], "field adapters.id: expecting a value of type list, got none"),
        ("adapters.id.1", "A0", "field adapters.id: expecting each value once, got 'A0' twice"),
        ("adapters.host", [0], "field adapters.host: expecting 2 values, got 1"),
        ("adapters.host.1", 2, "field adapters.host[1]: expecting a number from 0 to 1, got 2"),
        ("adapters.host.1", 1.0, "field adapters.host[1]: expecting a list of integers, got float"),
        ("switches.id.1", "A1", "field switches.id: expecting ids that no adapter has, got 'A1'"),
        ("switches.name", ["x"], "field switches.name: expecting 2 values, got 1"),
        ("links", ..., "field links.source: expecting a value of type list, got none"),
        ("links.source.0", 4, "field links.source[0]: expecting a number from 0 to 3, got 4"),
        ("links.target.5", -1, "field links.target[5]: expecting a number from 0 to 3, got -1"),
        ("links.target.5", 10**30, f"field links.target[5]: expecting a number from 0 to 3, got {10**30}"),
        ("links.target", [0], "field links.target: expecting 6 values, got 1"),
        (
            "links.source_port.2",
            65_536,
            "field links.source_port[2]: expecting a number from 0 to 65535, got 65536",
        ),
        ("links.target_port", ..., "field links.target_port: expecting a value of type list, got none"),
        ("links.rate.1", "fast", "field links.rate[1]: expecting a list of numbers or null, got str"),
        ("links.rate.1", -1.0, "field links.rate[1]: expecting a finite number of at least 0, got -1.0"),
        ("links.latency", [], "field links.latency: expecting 6 values, got 0"),
        ("routes", [], "field routes.engine: expecting a value of type str, got none"),
        ("routes.engine", ..., "field routes.engine: expecting a value of type str, got none"),
        ("routes.next_link", {}, "field routes.next_link: expecting a value of type list, got dict"),
        (
            "routes.next_link.0.1",
            [5],
            "field routes.next_link: expecting (paths, 2, 2) integers, got lists of unequal length",
        ),
        (
            "routes.next_link.0",
            [[1, 4]],
            "field routes.next_link: expecting (paths, 2, 2) integers, got (1, 1, 2) of int64",
        ),
        (
            "routes.next_link.0.0.0",
            0.5,
            "field routes.next_link: expecting (paths, 2, 2) integers, got (1, 2, 2) of float64",
        ),
        (
            "routes.next_link.0.1.0",
            6,
            "field routes.next_link[0][1][0]: expecting a link from 0 to 5, or -1, got 6",
        ),
        (
            "routes.next_link.0.1.0",
            1,
            "field routes.next_link[0][1][0]: expecting a link that leaves switch S1, got 1, which leaves S0",
        ),
        ("torus", {"dims": [1]}, "field torus.dims[0]: expecting a number from 2 to 2147483647, got 1"),
        ("torus", {"dims": [2], "wrap": [1]}, "field torus.wrap: expecting 1 times true or false, got [1]"),
        (
            "torus",
            {"dims": [2], "wrap": [True], "coordinates": [[0]]},
            "field torus.coordinates: expecting 1 integers for each of 2 switches, got [[0]]",
        ),
        (
            "torus",
            {"dims": [2], "wrap": [True], "coordinates": [[0], [2]]},
            "field torus.coordinates: expecting numbers from 0 to 1, got 2",
        ),
    ],
)
def test_a_bad_field_is_named(path: str, value: Any, message: str) -> None:
    document = json.loads(fabricjson.write(small_fabric(), small_routes()))
    change(path, value)(document)
    for partial in (False, True):
        with pytest.raises(SourceError) as caught:
            fabricjson.read([text_of(json.dumps(document))], Report(partial=partial))
        assert str(caught.value) == f"f: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": "topompi fabric",\n"version": 1', "f:2: expecting JSON: Expecting ',' delimiter"),
        ('{"format": "topompi fabric", "version": NaN}', "f: expecting JSON, got NaN"),
        ('{"format": "another", "version": 1}', "f: field format: expecting 'topompi fabric', got 'another'"),
        ("[]", "f: field format: expecting a value of type str, got none"),
        ("[" * 100_000, "f: expecting JSON with brackets nested within reason, got more"),
        ("9" * 5000, "f: field format: expecting a value of type str, got none"),
    ],
)
def test_what_is_no_fabric_json_is_refused(content: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        fabricjson.read([text_of(content)], Report())
    assert str(caught.value).startswith(message)


def test_two_files_are_refused() -> None:
    text = text_of(fabricjson.write(small_fabric()))
    with pytest.raises(SourceError) as caught:
        fabricjson.read([text, text], Report())
    assert str(caught.value) == "expecting one fabric.json, got f, f"


def test_only_the_own_format_is_recognised() -> None:
    assert fabricjson.recognise('\n{ "version": 1, "format" : "topompi fabric"}')
    assert not fabricjson.recognise('{"format": "osu_like_bench record"}')
    assert not fabricjson.recognise('# "format": "topompi fabric"')
