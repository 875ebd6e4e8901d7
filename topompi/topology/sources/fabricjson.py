"""Reader and writer of ``fabric.json``, topompi's own lossless format of fabrics and forwarding tables."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...errors import FabricError, SourceError
from ...inputs import InputFile, current_limits, parse_json
from ..discovery import Discovery, Report
from ..fabric import Fabric, IntArray
from ..routes import Routes
from ..torus import SwitchTorus

__all__ = ["FORMAT", "NAME", "VERSION", "document_of", "read", "read_document", "recognise", "write"]

NAME = "fabric.json"
FORMAT = "topompi fabric"
VERSION = 1
MAX_QUANTITY = sys.float_info.max
MAX_PORT = 65_535  # largest port number; limits the memory of Fabric.links_by_port, which has one column per port

_HEADING = re.compile(rf'\s*\{{.*"format"\s*:\s*"{FORMAT}"', re.DOTALL)


def write(fabric: Fabric, routes: Routes | None = None, indent: int | None = None) -> str:
    """Write a fabric, and its routes if given, as strict JSON in ASCII; unknown rates and latencies are null.

    Routes that come from a source's forwarding tables are written in full, as a list of link numbers by adapter for
    each path and switch. Of computed routes only the engine's name is written, because they can be computed again. LIDs
    are not written; therefore forwarding tables that identify ports by LID alone cannot be read together with the
    result.

    :param fabric: the fabric.
    :param routes: routes over this fabric; None to write none.
    :param indent: number of spaces per level for human readers; by default the text has no blanks at all.
    :raises FabricError: if a rate or latency is infinite, because JSON has no infinity.
    """
    document = document_of(fabric)
    if routes is not None and routes.engine.startswith("computed"):
        document["routes"] = {"engine": routes.engine}
    elif routes is not None:
        document["routes"] = {"engine": routes.engine, "next_link": routes.next_link.tolist()}
    separators = (",", ":") if indent is None else None
    return json.dumps(document, indent=indent, separators=separators, allow_nan=False)


def document_of(fabric: Fabric) -> dict[str, object]:
    """Make the JSON object of a fabric, without routes; FabricError if a rate or latency is infinite."""
    document: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "name": fabric.name,
        "hosts": fabric.hosts,
        "adapters": {"id": fabric.adapter_ids, "host": fabric.adapter_host.tolist()},
        "switches": {"id": fabric.switch_ids, "name": fabric.switch_names},
        "links": {
            "source": fabric.link_source.tolist(),
            "target": fabric.link_target.tolist(),
            "source_port": fabric.link_source_port.tolist(),
            "target_port": fabric.link_target_port.tolist(),
            "rate": _nullable(fabric.link_rate, "rate"),
            "latency": _nullable(fabric.link_latency, "latency"),
        },
    }
    if not fabric.cabled:
        document["cabled"] = False
    if fabric.part_of is not None:
        torus = fabric.part_of
        places = torus.coordinates.tolist()
        document["torus"] = {"dims": list(torus.dims), "wrap": list(torus.wrap), "coordinates": places}
    return document


def _nullable(values: NDArray[np.float64], what: str) -> list[float | None]:
    if np.isinf(values).any():
        link = int(np.flatnonzero(np.isinf(values))[0])
        raise FabricError(f"link {link}: expecting a finite {what}, got {values[link]}")
    return [None if math.isnan(value) else value for value in values.tolist()]


def recognise(head: str) -> bool:
    """Whether a text begins with an object that has the field ``"format": "topompi fabric"``."""
    return _HEADING.match(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of a ``fabric.json``, with its routes if it contains them.

    :param texts: the file; exactly one.
    :param report: receiver of problems, unused.
    :raises SourceError: if the text is no JSON, with the line; if a field is missing, out of range, or of another type,
        or the version is newer, with the field. The error is raised in a partial reading, too, because no part of a
        fabric is reliable if its columns contradict each other.
    """
    if len(texts) > 1:
        raise SourceError(f"expecting one {NAME}, got {', '.join(text.name for text in texts)}")
    return read_document(parse_json(texts[0].data(), texts[0].name, SourceError), texts[0].name)


def read_document(root: object, name: str) -> Discovery:
    """Make the fabric and routes of a parsed ``fabric.json``; SourceError as in `read`.

    :param root: the parsed document.
    :param name: name of the file for error messages.
    """
    document = _Document(name, root)
    document.check_format()
    fabric = _read_fabric(document)
    return Discovery(fabric, _read_routes(document, fabric))


@dataclass(frozen=True)
class _Document:
    """A parsed ``fabric.json`` whose fields are found by dotted names, which error messages repeat.

    :param file: name of the file for error messages.
    :param root: the parsed document.
    """

    file: str
    root: Any

    def fail(self, field: str, wanted: str, got: str) -> NoReturn:
        raise SourceError(f"{self.file}: field {field}: expecting {wanted}, got {got}")

    def check_format(self) -> None:
        if self.field("format", str) != FORMAT:
            self.fail("format", repr(FORMAT), _short(repr(self.root["format"])))
        version = self.field("version", int)
        if version < 1 or version > VERSION:
            self.fail("version", f"1 to {VERSION}, as this topompi reads", _short(version))

    def field(self, name: str, kind: type) -> Any:
        value = self.root
        for key in name.split("."):
            if not isinstance(value, Mapping) or key not in value:
                self.fail(name, f"a value of type {kind.__name__}", "none")
            value = value[key]
        if type(value) is not kind:
            self.fail(name, f"a value of type {kind.__name__}", type(value).__name__)
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        return tuple(self._list(name, {str}, "strings"))

    def unique(self, name: str) -> tuple[str, ...]:
        values = self.strings(name)
        if len(set(values)) < len(values):
            self.fail(name, "each value once", f"{Counter(values).most_common(1)[0][0]!r} twice")
        return values

    def integers(self, name: str, low: int, high: int, length: int | None = None) -> IntArray:
        """Return a field as a column of integers from ``low`` to below ``high``.

        :param name: dotted name of the field.
        :param low: smallest value.
        :param high: largest value plus 1.
        :param length: required number of values; None if any number is allowed.
        """
        values = self._list(name, {int}, "integers", length)
        for index, value in enumerate(values):
            if not low <= value < high:
                self.fail(f"{name}[{index}]", f"a number from {low} to {high - 1}", _short(value))
        return np.array(values, dtype=np.int32)

    def quantities(self, name: str, length: int) -> NDArray[np.float64]:
        values = self._list(name, {int, float, type(None)}, "numbers or null", length)
        for index, value in enumerate(values):
            if value is not None and not 0 <= value <= MAX_QUANTITY:
                self.fail(f"{name}[{index}]", "a finite number of at least 0", _short(value))
        return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)

    def _list(self, name: str, kinds: set[type], shown: str, length: int | None = None) -> list[Any]:
        values: list[Any] = self.field(name, list)
        for index, value in enumerate(values):
            if type(value) not in kinds:  # not isinstance, because bool is a subclass of int
                self.fail(f"{name}[{index}]", f"a list of {shown}", type(value).__name__)
        if length is not None and len(values) != length:
            self.fail(name, f"{length} values", str(len(values)))
        return values


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_fabric(document: _Document) -> Fabric:
    hosts = document.unique("hosts")
    current_limits().check("hosts", len(hosts), document.file, SourceError)
    adapters, switches = document.unique("adapters.id"), document.unique("switches.id")
    shared = set(adapters) & set(switches)
    if shared:
        document.fail("switches.id", "ids that no adapter has", repr(min(shared)))
    names = document.strings("switches.name")
    if len(names) != len(switches):
        document.fail("switches.name", f"{len(switches)} values", str(len(names)))
    vertices = len(adapters) + len(switches)
    source = document.integers("links.source", 0, vertices)
    links = len(source)
    return Fabric(
        name=document.field("name", str),
        hosts=hosts,
        adapter_ids=adapters,
        adapter_host=document.integers("adapters.host", 0, len(hosts), len(adapters)),
        switch_ids=switches,
        switch_names=names,
        link_source=source,
        link_target=document.integers("links.target", 0, vertices, links),
        link_source_port=document.integers("links.source_port", 0, MAX_PORT + 1, links),
        link_target_port=document.integers("links.target_port", 0, MAX_PORT + 1, links),
        link_rate=document.quantities("links.rate", links),
        link_latency=document.quantities("links.latency", links),
        cabled=document.field("cabled", bool) if "cabled" in document.root else True,
        part_of=_read_torus(document, len(switches)) if "torus" in document.root else None,
    )


def _read_torus(document: _Document, switches: int) -> SwitchTorus:
    """Read the torus of the whole fabric, from a document that contains a part of a torus."""
    dims = document.integers("torus.dims", 2, 1 << 31)
    wrap: list[bool] = document.field("torus.wrap", list)
    if len(wrap) != len(dims) or {type(ring) for ring in wrap} != {bool}:
        document.fail("torus.wrap", f"{len(dims)} times true or false", _short(wrap))
    places: list[Any] = document.field("torus.coordinates", list)
    rows = [row for row in places if type(row) is list and len(row) == len(dims)]
    if not len(rows) == len(places) == switches or {type(one) for row in rows for one in row} - {int}:
        document.fail("torus.coordinates", f"{len(dims)} integers for each of {switches} switches", _short(places))
    for row in rows:
        for place, extent in zip(row, dims.tolist(), strict=True):
            if not 0 <= place < extent:
                document.fail("torus.coordinates", f"numbers from 0 to {extent - 1}", _short(place))
    shape = (switches, len(dims))
    return SwitchTorus(tuple(dims.tolist()), tuple(wrap), np.array(rows, dtype=np.int64).reshape(shape))


def _read_routes(document: _Document, fabric: Fabric) -> Routes | None:
    """Read the routes of the document; None if it has none, or only the engine's name of computed routes."""
    if "routes" not in document.root:
        return None
    engine = document.field("routes.engine", str)
    if "next_link" not in document.root["routes"]:
        return None
    shape = (fabric.num_switches, fabric.num_adapters)
    field = "routes.next_link"
    paths = document.field(field, list)
    try:
        table = np.array(paths) if 0 not in shape else np.empty((len(paths), *shape), dtype=np.int32)
    except ValueError:  # numpy's error for lists of unequal length
        document.fail(field, f"(paths, {shape[0]}, {shape[1]}) integers", "lists of unequal length")
    if table.dtype.kind != "i" or table.ndim != 3 or table.shape[1:] != shape:
        document.fail(field, f"(paths, {shape[0]}, {shape[1]}) integers", f"{table.shape} of {table.dtype}")
    _check_links(document, field, table, fabric)
    return Routes(fabric, engine, table.astype(np.int32))


def _check_links(document: _Document, field: str, table: NDArray[Any], fabric: Fabric) -> None:
    """Fail unless each entry of the table is -1 or the number of a link that leaves the entry's switch.

    :param document: the document, for its error message.
    :param field: dotted name of the table's field.
    :param table: link numbers, shape (paths, switches, adapters).
    :param fabric: the fabric of the links.
    """
    outside = (table < -1) | (table >= fabric.num_links)
    if outside.any():
        place = np.argwhere(outside)[0]
        wanted = f"a link from 0 to {fabric.num_links - 1}, or -1"
        document.fail(field + "".join(f"[{i}]" for i in place), wanted, str(table[tuple(place)]))
    vertex = np.arange(fabric.num_switches)[:, np.newaxis] + fabric.num_adapters
    start = np.where(table >= 0, fabric.link_source[table], vertex) if fabric.num_links else vertex
    if (start != vertex).any():
        place = np.argwhere(start != vertex)[0]
        leaves = fabric.vertex_id(int(start[tuple(place)]))
        wanted = f"a link that leaves switch {fabric.switch_ids[place[1]]}"
        document.fail(field + "".join(f"[{i}]" for i in place), wanted, f"{table[tuple(place)]}, which leaves {leaves}")
