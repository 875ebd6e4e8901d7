"""The audit: it reports what it could not look up, and fails only if a vulnerability is known."""

import json
import re
from pathlib import Path

import pytest

from tests.audit import audit
from tests.support import ROOT

SOUND = {"name": "numpy", "version": "2.0", "vulns": []}
HOLE = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "CVE-2025-27516", "fix_versions": ["3.1.6"]}]}


@pytest.mark.parametrize(
    ("install", "found", "code", "words"),
    [
        (1, (1, "", ""), 0, "skipped: pip-audit cannot be installed: no network"),
        (
            0,
            (1, "", "x\nConnectionError: no"),
            0,
            "skipped: the list of advisories cannot be reached: ConnectionError: no",
        ),
        (0, (124, "", "no end within 300 s"), 0, "skipped: the list of advisories cannot be reached: no end within"),
        (0, (0, json.dumps({"dependencies": [SOUND]}), ""), 0, "1 packages, 0 known holes"),
        (0, (1, json.dumps({"dependencies": [SOUND, HOLE]}), ""), 1, "jinja2 3.0: CVE-2025-27516, mended in 3.1.6"),
    ],
)
def test_only_a_known_hole_fails_the_audit(install, found, code, words):
    def call(command):
        return (install, "", "no network") if "pip" in command else found

    status, lines = audit(Path("x"), "python", call)
    assert (status, words in "\n".join(lines)) == (code, True)


def test_every_dependency_has_a_least_version_but_those_that_are_named():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.findall(
        r'"([A-Za-z0-9_.\[\]-]+)((?:[><=!~]=?[^"]*)?)"', text.split("[project.scripts]")[0].split("dependencies", 1)[1]
    )
    without = {name for name, version in listed if not version}
    assert without == {"pyscotch", "chszlablib", "types-PyYAML", "scipy-stubs"}
