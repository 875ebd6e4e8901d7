"""Reader of hwloc XML, versions 1 to 3, which ``lstopo --of xml`` writes; XML entities are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from ...errors import FabricError, TopompiError
from ...inputs import InputFile, open_inputs
from .cpus import lowest, read_bitmap
from .values import CORE, NUMA, PACKAGE, Adapter, HostPart, Inside, guid_of

__all__ = ["NAME", "read", "read_file"]

NAME = "hwloc XML"
MOST_BYTES = 64 << 20  # bytes; limits a file to twenty times that of a host with 2,048 CPUs and all its devices
MOST_OBJECTS = 1 << 18
MOST_DEPTH = 256
CHUNK = 1 << 18
_CACHE = re.compile(r"L([1-5])i?Cache")
_KINDS = {"Package": PACKAGE, "Socket": PACKAGE, "NUMANode": NUMA, "Core": CORE}  # hwloc before 1.11 wrote "Socket"
_PORT = re.compile(r"Port([0-9]{1,3})GID0")


def read_file(path: str | os.PathLike[str]) -> Inside:
    """Read the hardware topology of the host that an hwloc XML file, packed or not, describes.

    :raises FabricError: if the file is no hwloc XML, is damaged, or exceeds a limit.
    """
    texts = open_inputs(path, FabricError, NAME)
    if len(texts) != 1:
        raise FabricError(f"{path}: expecting one file of {NAME}, which describes one host, got {len(texts)}")
    return read(texts[0])


def read(text: InputFile) -> Inside:
    """Read the hardware topology of the host that an hwloc XML text describes; FabricError as for `read_file`."""
    text.head()  # raises an error for empty or binary input
    reader = _Reader(text.name)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.EntityDeclHandler = reader.refuse_entities
    reader.line = lambda: parser.CurrentLineNumber
    size = 0
    try:
        with text.open() as stream:
            while chunk := stream.read(CHUNK):
                size += len(chunk)
                if size > MOST_BYTES:
                    reader.fail(f"at most {MOST_BYTES:,} bytes", "more")
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except TopompiError:
        raise
    except expat.ExpatError as error:
        raise FabricError(
            f"{text.name}:{error.lineno}: expecting {NAME}, got: {expat.ErrorString(error.code)}"
        ) from error
    except (ValueError, LookupError) as error:  # the parser does not support the encoding
        raise FabricError(f"{text.name}: expecting {NAME} in UTF-8, got: {error}") from error
    return reader.finish()


@dataclass
class _Object:
    """An XML element <object> whose end the parser has not yet reached.

    :param type: hwloc's type of the object.
    :param name: hwloc's name of the object, empty if it has none.
    :param cpus: CPUs of the object; those of the enclosing object if it has no cpuset.
    :param infos: name -> value of its <info> elements.
    """

    type: str
    name: str
    cpus: int
    infos: dict[str, str] = field(default_factory=dict)


class _Reader:
    """The handlers of the XML parser's events, which collect the host's parts.

    :param name: name of the file, for error messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.line: Callable[[], int] = lambda: 0
        self._elements: list[str] = []
        self._open: list[_Object] = []
        self._parts: list[HostPart] = []
        self._adapters: list[Adapter] = []
        self._cpus = 0
        self._infos: dict[str, str] = {}
        self._objects = 0

    def fail(self, expected: str, got: str) -> NoReturn:
        raise FabricError(f"{self.name}:{self.line()}: expecting {expected}, got {got}")

    def refuse_entities(self, name: str, *_: object) -> None:
        self.fail(f"{NAME}, which declares no entities", repr(name[:60]))

    def start(self, element: str, attributes: dict[str, str]) -> None:
        if not self._elements and element != "topology":
            self.fail(f"{NAME}, whose first element is <topology>", f"<{element[:60]}>")
        self._elements.append(element)
        if len(self._elements) > MOST_DEPTH:
            self.fail(f"elements nested at most {MOST_DEPTH} deep", "more")
        if element == "object":
            self._begin(attributes)
        elif element == "info" and (self._open or len(self._elements) == 2):
            infos = self._open[-1].infos if self._open else self._infos  # hwloc 3 writes the host's below <topology>
            infos[attributes.get("name", "")] = attributes.get("value", "")

    def _begin(self, attributes: dict[str, str]) -> None:
        self._objects += 1
        if self._objects > MOST_OBJECTS:
            self.fail(f"at most {MOST_OBJECTS:,} objects", "more")
        type_ = attributes.get("type", "")
        kind = _kind_of(type_, attributes)
        around = self._open[-1].cpus if self._open else 0
        cpus = self._bitmap(attributes["cpuset"], type_) if "cpuset" in attributes else around
        if kind is not None and "cpuset" not in attributes:
            self.fail(f"a cpuset of each {type_}", "none")
        self._open.append(_Object(type_, attributes.get("name", ""), cpus))
        if type_ == "PU":
            self._cpus |= cpus
        if kind in (PACKAGE, NUMA):
            self._parts.append(HostPart(kind, self._number(attributes, lowest(cpus)), cpus))
        elif kind is not None:
            self._parts.append(HostPart(kind, lowest(cpus), cpus))

    def _bitmap(self, text: str, type_: str) -> int:
        try:
            return read_bitmap(text)
        except ValueError as error:
            raise FabricError(f"{self.name}:{self.line()}: cpuset of a {type_[:40]}: {error}") from error

    def _number(self, attributes: dict[str, str], default: int) -> int:
        text = attributes.get("os_index", str(default))
        if not re.fullmatch(r"-1|[0-9]{1,9}", text):
            self.fail("an os_index", repr(text[:40]))
        return int(text)

    def end(self, element: str) -> None:
        self._elements.pop()
        if element != "object":
            return
        closed = self._open.pop()
        if "HostName" in closed.infos:
            self._infos["HostName"] = closed.infos["HostName"]
        if closed.type == "OSDev" and "NodeGUID" in closed.infos:
            self._adapters.append(self._adapter(closed))

    def _adapter(self, device: _Object) -> Adapter:
        ports = sorted((int(match[1]), gid) for name, gid in device.infos.items() if (match := _PORT.fullmatch(name)))
        try:
            guids = tuple(guid_of(gid) for _, gid in ports)
            return Adapter(device.name, guid_of(device.infos["NodeGUID"]), guids, device.cpus)
        except ValueError as error:
            raise FabricError(f"{self.name}:{self.line()}: adapter {device.name[:40]}: {error}") from error

    def finish(self) -> Inside:
        if not self._cpus:
            self.fail("a host with CPUs (objects of the type PU)", "none")
        if not any(part.kind == NUMA for part in self._parts):  # hwloc 1 omits the node if there is only one
            self._parts.append(HostPart(NUMA, 0, self._cpus))
        return Inside.of(
            f"{NAME}, {self.name}", self._infos.get("HostName", ""), self._cpus, self._parts, self._adapters
        )


def _kind_of(type_: str, attributes: dict[str, str]) -> str | None:
    """The kind of ``HostPart`` that an hwloc object is; None for other objects and for instruction caches."""
    if type_ == "Cache":  # hwloc 1: the level and the type of a cache are attributes
        instructions = attributes.get("cache_type") == "2"
        return f"L{attributes.get('depth')}" if attributes.get("depth") in set("12345") and not instructions else None
    match = _CACHE.fullmatch(type_)
    if match and "i" not in type_:
        return f"L{match[1]}"
    return _KINDS.get(type_)
