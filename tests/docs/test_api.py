"""The page of the Python interface lists exactly the public names; names of the last release do not vanish unsaid."""

import importlib
import json
import re

import pytest

from tests.support import ROOT

ROOMS = {
    room: set(re.findall(r"`(\w+)`", text))
    for room, text in re.findall(r"^## ([\w.]+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/api.md").read_text(), re.M | re.S)
}
RELEASED = json.loads((ROOT / "tests/records/api.json").read_text())
TOP = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1]


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_lists_what_a_room_makes_public_and_each_name_opens(room):
    module = importlib.import_module(room)
    assert ROOMS[room] == set(module.__all__)
    if room != "topompi":  # whose classes need an MPI library
        assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


@pytest.mark.parametrize("room", RELEASED["names"])
def test_a_public_name_that_is_gone_since_the_last_release_has_an_entry_in_the_changelog(room):
    gone = set(RELEASED["names"][room]) - ROOMS.get(room, set())
    assert [name for name in sorted(gone) if not re.search(rf"`([\w.]+\.)?{name}`", TOP)] == []
