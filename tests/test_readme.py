"""What the documents show is what happens: their programs are run and their consoles compared."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.documents import BLOCK, DOCUMENTS, OTHERS
from tests.support import ROOT, mpirun


def run(line, folder):
    """Run one command line of a console block as a user's shell would, with this Python and its MPI."""
    words = shlex.split(line)
    first = next(at for at, word in enumerate(words) if "=" not in word)
    given, words = dict(word.split("=", 1) for word in words[:first]), words[first:]
    if words[0] == "mpirun":
        words = [*mpirun(), *(word for word in words[1:] if word != "--oversubscribe")]  # mpirun() has what is needed
    elif words[0] == "topompi":
        words = [sys.executable, "-m", *words]
    words = [sys.executable if word == "python" else word for word in words]
    env_path = {"PYTHONPATH": str(ROOT), "COLUMNS": "120", **given}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder, env=os.environ | env_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def trimmed(text):
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_consoles_print_what_the_document_says(document, tmp_path):
    blocks = BLOCK.findall(document.read_text(encoding="utf-8"))
    for _, name, content in blocks:
        if name:
            (tmp_path / name).write_text(content, encoding="utf-8")
    for kind, _, content in blocks:
        if kind == "console":
            for command in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                line, _, expected = command.partition("\n")
                assert trimmed(run(line, tmp_path)) == trimmed(expected), line


def anchors(document):
    """The anchors of a page's headings, as the forges make them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [*DOCUMENTS, *OTHERS, ROOT / "CHANGELOG.md"], ids=lambda path: str(path))
def test_links_inside_the_repository_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)", document.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        page = document.parent / file if file else document
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target


def test_every_concept_is_said_once_and_readers_find_the_page():
    terms = re.findall(r"^### (.*)$", (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [term.lower() for term in terms]
    assert len(words) == len(set(words)) > 30
    for page in ("README.md", "docs/architecture.md"):
        assert "concepts.md)" in (ROOT / page).read_text(encoding="utf-8")


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
