"""The documents' examples: their programs are run, and their consoles are compared with the output."""

import re
import shlex

import pytest

from tests.documents import BLOCK, DOCUMENTS, OTHERS
from tests.support import ROOT, command_line

CONSOLES = [document for document in DOCUMENTS if "```console" in document.read_text(encoding="utf-8")]
SLOW = {"docs/lanes.md"}  # whose commands take half a minute
OF_JOBS = [document for document in CONSOLES if "$ mpirun" in document.read_text(encoding="utf-8")]


def split(line):
    """The variables that a command line sets, and its words."""
    words = shlex.split(line)
    first = next(at for at, word in enumerate(words) if "=" not in word)
    return dict(word.split("=", 1) for word in words[:first]), words[first:]


ANSWERING = ("topompi jobs check ",)  # whose exit code 1 is an answer


def run(line, folder):
    """What became of a command of ours."""
    given, words = split(line)
    assert words[0] == "topompi"
    return command_line(*words[1:], folder=folder, COLUMNS="120", **given)


def trimmed(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def consoles_print_what_they_say(document, folder, run):
    blocks = BLOCK.findall(document.read_text(encoding="utf-8"))
    for _, name, content in blocks:
        if name:
            (folder / name).write_text(content, encoding="utf-8")
    for kind, _, content in blocks:
        if kind == "console":
            for command in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                line, _, expected = command.partition("\n")
                done = run(line, folder)
                answers = (0, 1) if line.startswith(ANSWERING) else (0,)
                assert done.returncode in answers, done.stderr
                assert trimmed(done.stdout) == trimmed(expected), line


def of(documents):
    names = {str(path.relative_to(ROOT)): path for path in documents}
    marks = {name: [pytest.mark.long] if name in SLOW else [] for name in names}
    return pytest.mark.parametrize(
        "document", [pytest.param(names[name], id=name, marks=marks[name]) for name in names]
    )


@of([document for document in CONSOLES if document not in OF_JOBS])
def test_consoles_print_what_the_document_says(document, tmp_path):
    consoles_print_what_they_say(document, tmp_path, run)


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
