"""Mappings as JSON: hosts, slots, digest, and the slot of each rank."""

from __future__ import annotations

import json

from ...inputs import parse_json
from ..mapping import Mapping
from .header import RankFile, RankFileError

__all__ = ["FORMAT", "VERSION", "read", "recognise", "write"]

FORMAT = "topompi mapping"
VERSION = 1
MOST = 2**31


def write(mapping: Mapping) -> str:
    """The mapping as one JSON object; slots are numbered host by host."""
    root = {
        "format": FORMAT,
        "version": VERSION,
        "digest": mapping.digest,
        "hosts": list(mapping.hosts),
        "slots": mapping.slots.tolist(),
        "slot_of_rank": mapping.slot_of_rank.tolist(),
    }
    return json.dumps(root) + "\n"


def recognise(file: RankFile) -> bool:
    """Whether the file is a JSON object."""
    return file.text.lstrip().startswith("{")


def read(file: RankFile) -> Mapping:
    """Read a mapping that `write` wrote.

    :raises RankFileError: if it is no JSON (the message names file and line) or no mapping (file and field).
    """
    root = parse_json(file.text, file.name, RankFileError)
    if root.get("format") != FORMAT or root.get("version") != VERSION:
        found = f"{root.get('format')!r}, version {root.get('version')!r}"
        raise RankFileError(f"{file.name}: expecting format {FORMAT!r}, version {VERSION}, got {found}")
    hosts = root.get("hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise RankFileError(f"{file.name}: expecting hosts to be a list of names, got {type(hosts).__name__}")
    slots, slot_of_rank = (_numbers(file, name, root.get(name)) for name in ("slots", "slot_of_rank"))
    if len(slots) != len(hosts):
        raise RankFileError(f"{file.name}: expecting slots for each of {len(hosts)} hosts, got {len(slots)}")
    file.check_digest(hosts, slots, str(root.get("digest")), file.name)
    known = RankFile(file.name, file.text, file.machine)
    known.__dict__["allocation"] = (tuple(hosts), slots)
    return known.of_slots(slot_of_rank)


def _numbers(file: RankFile, name: str, values: object) -> list[int]:
    if not isinstance(values, list) or not all(type(one) is int and 0 <= one < MOST for one in values):
        raise RankFileError(f"{file.name}: expecting {name} to be a list of whole numbers from 0, got {values!r:.60}")
    return values
