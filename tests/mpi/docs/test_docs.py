"""The documentation: its commands exist, its pages make a site, and the site loads nothing from other servers."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs.commandline import commands
from tests.cli.test_options import accepted
from tests.docs.test_docstrings import (
    owed,
)
from tests.docs.test_readme import OF_JOBS, consoles_print_what_they_say, of, run, split
from tests.docs.test_walks import walked
from tests.documents import BLOCK, DOCUMENTS, OTHERS, faults, shown
from tests.support import ROOT, mpirun
from topompi.cli.setup.env import OURS
from topompi.mapping import MAPPERS
from topompi.mapping.rankfiles import WRITERS
from topompi.mpi.launcher import FLAGS, VALUES


@pytest.mark.parametrize("page", [*DOCUMENTS, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one(page):
    wrong = [f"{line}: {fault}" for line, whole in shown(page) for fault in faults(line, whole)]
    assert not wrong


# Options of programs of others that the guides name.
OTHER_PROGRAMS = {
    *("--allow-run-as-root", "--oversubscribe", "--mca"),
    *("--exclude", "--constraint", "--gres", "--reservation", "--exclusive"),
    *("--yaml", "--show-labels", "--quick"),
}
GUIDES = [page for page in DOCUMENTS if "lab" not in page.parts]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_a_guide_names_is_one_of_some_command(page):
    entries = [*commands("topompi"), *commands("osu_like_bench")]
    known = {option for one in entries for each in one.command.get_params(one.context()) for option in each.opts}
    quoted = re.findall(r"`(--[a-z][^`]*)`", BLOCK.sub("", page.read_text(encoding="utf-8")))
    named = {word.partition("=")[0] for words in quoted for word in words.split() if word.startswith("--")}
    assert named <= known | OTHER_PROGRAMS | {*FLAGS, *VALUES, "--version"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("topompi topology shew FILE", "expecting a command of topompi"),
        ("topompi topology show FILE --hots n1", "topompi topology show: No such option: --hots"),
        ("mpirun -n 2 topompi run --mapp x ./app", "expecting a command of topompi"),
        ("topompi topology show", "expecting source, got none"),
        ("mpirun -n 2 python -m topompi tune bcast -m", "topompi tune: Option '-m' requires"),
        ("topompi why alltoall 64K 2 --topology x", "expecting no further words, got ['2']"),
        ("cd x && topompi doctor --now > out || exit 1", "No such option: --now"),
        ("python -m osu_like_bench simulate bcast", "expecting --topology, got none"),
        ("python -m benchmarks.absent", "expecting a module, got benchmarks.absent"),
        ("python -m benchmarks.emulated --no-such", "expecting its options, got ['--no-such']"),
        ("topompi map prof A B --topology SOURCE --graph x", "No such option: --graph"),
        ("topompi map prof --topology tree=2:2@1:10 --format rankfile4", "--format: expecting One of rankfile"),
        ("topompi jobs worth log.swf --speedups FILE --rate -1", "--rate: "),
        ("sudo /opt/x/bin/topompi shutter walk --log FILE", "expecting a command of topompi"),
        ("ExecStart=/usr/bin/topompi shutter run --lag FILE", "No such option: --lag"),
        ("x=$(y) srun -n 4 python3 -m topompi probe --no-such 2>&1 | tee x", "No such option: --no-such"),
        ("python -m studies popper", "studies: expecting a source, got popper"),
        ("make coffee", "expecting targets of the Makefile, got ['coffee']"),
    ],
)
def test_what_the_command_line_refuses_is_found(line, fault):
    [found] = faults(line, whole=True)
    assert fault in found


def test_prose_may_leave_out_what_a_command_needs_but_names_its_options():
    assert not list(faults("topompi topology show --hosts LIST", whole=False))
    assert "--hots" in " ".join(faults("topompi topology show --hots LIST", whole=False))
    assert "expecting a command" in " ".join(faults("topompi topology shew", whole=False))


def test_numbers_of_the_benchmarks_have_bounds_and_absurd_ones_are_usage_errors():
    assert [wrong for entry in commands("osu_like_bench") for wrong in accepted(entry)] == []


def test_most_commands_are_shown_somewhere():
    lines = [line.split() for page in DOCUMENTS for line, _ in shown(page)]
    words = {tuple(line[at : at + 3]) for line in lines for at in range(len(line))}
    named = {
        entry.words for entry in commands("topompi") if any(one[: len(entry.words)] == entry.words for one in words)
    }
    assert named == {entry.words for entry in commands("topompi")} - {("topompi", "profile", "record")}  # the default


def test_pages_of_reference_name_all_there_is():
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in OURS if f"`{name}`" not in settings] == ["TOPOMPI_EMULATE_STATE", "TOPOMPI_SHARED_DATA"]
    mapping = (ROOT / "docs" / "mapping.md").read_text(encoding="utf-8")
    assert [name for name in (*MAPPERS, *WRITERS) if f"`{name}`" not in mapping] == []


class Links(HTMLParser):
    """What a page leads to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        where = self.leads if tag == "a" else self.loads
        where += [found[name] for name in ("href", "src") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built where nothing can be fetched."""
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None:
        pytest.skip("the extra docs is not installed: no site was built")
    folder = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, env=environment)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {page: Links(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}


@pytest.mark.long
def test_the_site_builds_without_warnings_and_every_link_of_it_leads_somewhere(site, pages):
    lost = []
    for page, links in pages.items():
        for link in (*links.leads, *links.loads):
            if not re.match(r"\w+:|//", link):
                target, _, anchor = unquote(link).partition("#")
                there = _target(site, page, target)
                known = pages[there].anchors | {"", "__top"} if there in pages else {""}
                lost += [f"{page.name}: {link}"] if not there.exists() or anchor not in known else []
    assert not lost
    assert len(pages) > 40


def _target(site: Path, page: Path, target: str) -> Path:
    there = site / target.lstrip("/") if target.startswith("/") else page.parent / target if target else page
    return there.resolve() / "index.html" if there.is_dir() else there.resolve()


@pytest.mark.long
def test_every_file_of_a_page_is_a_block_with_its_name_and_every_heading_is_one(site):
    """A fence with an option that the site does not know is none, and swallows what follows."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text, shown_text = page.read_text(encoding="utf-8"), (site / f"{page.stem}.html").read_text(encoding="utf-8")
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"<h[23] id=", shown_text)) == len(re.findall(r"^##{1,2} ", outside, re.MULTILINE)), page
        for name in re.findall(r"^```\w+ file=(\S+)$", text, re.MULTILINE):
            assert f'<span class="filename">{name}</span>' in shown_text, (page, name)


@pytest.mark.long
def test_the_site_loads_nothing_from_elsewhere(pages):
    """Neither pages nor their styles: fonts, scripts, pictures."""
    away = {link for links in pages.values() for link in links.loads if re.match(r"https?:|//", link)}
    assert not away


@pytest.mark.long
def test_the_reference_has_every_command_with_its_options_and_every_public_name(site, pages):
    text = {page.stem: page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")}
    for program in ("topompi", "osu_like_bench"):
        for entry in commands(program):
            assert "-".join(entry.words).lower() in pages[site / "reference" / f"{program}.html"].anchors
            shown_ones = [one for one in entry.command.params if not getattr(one, "hidden", False)]
            options = [name for one in shown_ones for name in one.opts if name.startswith("--")]
            assert not [name for name in options if name not in text[program]]
    anchors = pages[site / "reference" / "python" / "topompi.schedules.html"].anchors
    assert {"topompi.schedules.make", "topompi.schedules.Schedule", "topompi.schedules.check"} <= anchors


# --- Docstrings of public functions of the rooms that import MPI.


ON_MPI = (
    "osu_like_bench",
    "studies",
    "topompi.mpi.communicator",
    "topompi.mpi.dispatch",
    "topompi.mpi.execution",
    "topompi.mpi.launcher",
    "topompi.mpi.probe",
    "topompi.mpi.profile",
    "topompi.mpi.selection",
    "topompi.mpi.tuning",
)


@pytest.mark.parametrize("package", ON_MPI)
def test_so_do_those_that_run_on_mpi(package: str) -> None:
    from mpi4py import MPI

    assert MPI.COMM_SELF.size == 1  # what these packages import works
    assert owed(package) == {}


# --- Consoles of jobs print what the documents show.


def run_with_mpi(line, folder):
    """Run a command as a user's shell would, with this Python and its MPI, and return the finished process."""
    given, words = split(line)
    if words[0] == "topompi":
        return run(line, folder)
    if words[0] == "mpirun":
        words = [*mpirun(), *(word for word in words[1:] if word != "--oversubscribe")]  # mpirun() has what is needed
    words = [sys.executable if word == "python" else word for word in words]
    env = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "120", **given}
    return subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder, env=env)


@of(OF_JOBS)
@pytest.mark.long
def test_consoles_of_jobs_print_what_the_document_says(document, tmp_path):
    consoles_print_what_they_say(document, tmp_path, run_with_mpi)


# --- The walk of a program's author, step by step.


@pytest.mark.long
def test_the_author_of_a_program_gets_through(tmp_path):
    walked("author", tmp_path, mpirun())
