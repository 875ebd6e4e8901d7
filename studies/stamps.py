"""Stamps: the line under a table of docs/lab, or before it in a CSV file.

It has the command that makes the table, the commit, and digests of code and data.

The digest of code covers the module that makes the table and what it imports of ``COVERED``: programs that study and
measure, and the parts of topompi that define what is simulated (kernels, drawn loads, scenarios). Comments, docstrings,
layout, imports and the folders of modules do not count. The simulators and policies themselves are left out, because a
digest over them would change with every commit; tests make rows of tables again instead. Data are the shared files that
this code names.
"""

from __future__ import annotations

import ast
import csv
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path

from benchmarks.paths import ROOT, SHARED_DATA

__all__ = [
    "COVERED",
    "MADE",
    "MEASURED",
    "NONE",
    "Digests",
    "Placed",
    "Stamp",
    "cells_of",
    "csv_of",
    "digests",
    "placed_in",
    "read_here",
    "stamp_of",
    "table_lines",
]

COVERED = (
    "benchmarks/",
    "studies/",
    "osu_like_bench/kernels/",
    "topompi/machine/interference/kernels/",
    "topompi/machine/jobs/study.py",
    "topompi/machine/jobs/workload/generate.py",
)
WRITERS = ("benchmarks/paths.py", "studies/stamps.py", "studies/tables.py", "studies/tablelist.py")  # change no number
OTHER_FILES = (".c", ".sh")
# The rooms whose files may differ from the commit.
ROOMS = "benchmarks", "studies", "osu_like_bench", "topompi", "schedules", "mapping"
MADE, MEASURED, NONE = "made", "measured", "-"
_FOLDERS = re.compile(rf"\b(?:{'|'.join(ROOMS)})(?:/(?:\w+/)*|\.(?:\w+\.)*)(?=\w)")
_LINE = re.compile(
    r"(?:<!--|#) table: (?P<command>[^|]+?) \| "
    r"(?P<kind>made|measured) (?P<day>\d{4}-\d\d-\d\d) at (?P<commit>[0-9a-f]{8,40}\+?)(?: in (?P<seconds>\d+) s)? "
    r"\| code (?P<module>[\w.]+|-) (?P<code>[0-9a-f]{8}|-) \| data (?P<data>[0-9a-f]{8}|-)(?: -->)?"
)

Read = Callable[[str], "bytes | None"]


@dataclass(frozen=True)
class Digests:
    """Digests of the code and the data of a table, 8 hexadecimal digits each.

    :ivar code: digest of the code.
    :ivar data: digest of the data; ``-`` if the code names none.
    :ivar missing: names of data that are not here; the digest of data then tells nothing.
    """

    code: str
    data: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stamp:
    """The line under a table.

    :ivar command: command that makes the table.
    :ivar kind: ``made`` by simulation, so that the numbers come again, or ``measured`` in real time.
    :ivar day: day on which it was made.
    :ivar commit: commit at which it was made; with ``+`` if files differed from it.
    :ivar seconds: seconds of a processor that the table took; None if unknown.
    :ivar module: module that makes the table.
    :ivar code: digest of the code.
    :ivar data: digest of the data, or ``-``.
    """

    command: str
    kind: str
    day: date
    commit: str
    seconds: int | None
    module: str
    code: str
    data: str

    def __str__(self) -> str:
        return f"<!-- {self.comment[2:]} -->"

    @property
    def comment(self) -> str:
        """The stamp as the first line of a CSV file."""
        took = "" if self.seconds is None else f" in {self.seconds} s"
        when = f"{self.kind} {self.day.isoformat()} at {self.commit}{took}"
        return f"# table: {self.command} | {when} | code {self.module} {self.code} | data {self.data}"

    @classmethod
    def parse(cls, line: str) -> Stamp | None:
        """Return the stamp of a line of a page; None if it has none."""
        found = _LINE.fullmatch(line.strip())
        if found is None:
            return None
        seconds = None if found["seconds"] is None else int(found["seconds"])
        when = date.fromisoformat(found["day"]), found["commit"], seconds
        return cls(found["command"], found["kind"], *when, found["module"], found["code"], found["data"])


@dataclass(frozen=True)
class Placed:
    """A table of a page or of a CSV file.

    :ivar page: file of the page, or the CSV file.
    :ivar line: number of the table's first line, from 1.
    :ivar name: name of the marks around it; its first heads if it has none.
    :ivar rows: lines of the table, with its head.
    :ivar stamp: the line under it; None if there is none.
    """

    page: Path
    line: int
    name: str
    rows: tuple[str, ...]
    stamp: Stamp | None


def stamp_of(command: str, module: str, kind: str = MADE, seconds: float | None = None) -> Stamp:
    """Return the stamp of a table that has been made now.

    :param command: command that made it.
    :param module: module that made it.
    :param kind: ``made`` by simulation or ``measured``.
    :param seconds: seconds of a processor that it took; None if unknown.
    """
    found = digests(module, command)
    changed = _git("status", "--porcelain", "--", *ROOMS) != ""
    commit = (_git("rev-parse", "--short=8", "HEAD") or "0" * 8) + "+" * changed
    whole = None if seconds is None else max(1, round(seconds))
    return Stamp(command, kind, datetime.now(UTC).date(), commit, whole, module, found.code, found.data)


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table_lines(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table.

    :param head: names of the columns.
    :param rows: cells of each row.
    """
    for cells in chain((head, ["---"] * len(head)), rows):
        yield f"| {' | '.join(map(str, cells))} |"


def cells_of(line: str) -> list[str]:
    """Return the cells of a line that ``table_lines`` made."""
    return line[2:-2].split(" | ")


def csv_of(page: Path, name: str) -> Path:
    """Return the path of a table's CSV file, ``data/NAME.csv`` beside its page, with hyphens for the name's blanks."""
    return page.parent / "data" / f"{name.replace(' ', '-')}.csv"


def placed_in(page: Path) -> Iterator[Placed]:
    """Yield the tables of a page, from the first to the last; blank lines may stand between a table and its stamp.

    :param page: Markdown file, or a CSV file with one table.
    """
    if page.suffix == ".csv":
        with page.open(encoding="utf-8", newline="") as file:
            stamp = Stamp.parse(file.readline())
            head, *rows = csv.reader(file)
        yield Placed(page, 2, page.stem.replace("-", " "), tuple(table_lines(head, rows)), stamp)
        return
    lines, mark, first, code = [*page.read_text(encoding="utf-8").splitlines(), ""], "", None, False
    for at, line in enumerate(lines):
        code ^= line.startswith("```")
        if line.startswith("|") and not code:
            first = at if first is None else first
            continue
        if first is not None:
            after = next((one for one in lines[at:] if one.strip()), "")
            name = mark or ", ".join(cell.strip() for cell in lines[first].strip("| ").split("|")[:3])
            yield Placed(page, first + 1, name, tuple(lines[first:at]), Stamp.parse(after))
            first = None
        if (found := re.fullmatch(r"<!-- ([^:]*) -->", line)) is not None:
            mark = "" if found[1].startswith("end of ") else found[1]


def read_here(path: str) -> bytes | None:
    """Return the content of a file of the checkout; None if there is none."""
    file = ROOT / path
    return file.read_bytes() if file.is_file() else None


def digests(module: str, command: str = "", read: Read = read_here) -> Digests:
    """Compute the digests of what a module makes.

    :param module: dotted name of a module of ``COVERED``; ``-`` if a command of topompi makes the table by itself.
    :param command: command of the table, whose words may name further data.
    :param read: function that returns the content of a file of the repository, or None.
    """
    found, names = sha256(), set(command.split())
    plain = set[bytes]()
    for path, content in _covered(module, read):
        plain.add(_plain(content) if path.endswith(".py") else content)
        names |= {text for text in _texts(content) if len(text) > 4} if path.endswith(".py") else set()
    found.update(b"\n".join(sorted(plain - {_plain(b"")})))  # a folder brings an empty __init__
    files = _shared()
    used = sorted({files[word] for name in names if (word := name.rpartition("data/")[2]) in files})
    data = sha256()
    for name in used:
        data.update(name.encode() + (SHARED_DATA / name).read_bytes())
    code = NONE if module == NONE else found.hexdigest()[:8]
    return Digests(code, data.hexdigest()[:8] if used else NONE, () if files else ("shared data",))


def _covered(module: str, read: Read) -> Iterator[tuple[str, bytes]]:
    """Yield paths and contents of a module's files, and of those of the covered modules that it imports."""
    todo, seen = [*_candidates(module)], set[str]()
    while todo:
        path = todo.pop()
        if path in seen or path in WRITERS or not path.startswith(COVERED):
            continue
        seen.add(path)
        content = read(path)
        if content is None:
            continue
        yield path, content
        if path.endswith(".py"):
            folder = path.rpartition("/")[0]
            todo += [f"{folder}/{text}" for text in _texts(content) if text.endswith(OTHER_FILES)]
            todo += [one for name in _imports(content, folder) for one in _candidates(name)]


def _candidates(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


@cache
def _tree(content: bytes) -> ast.Module:
    return ast.parse(content)


def _imports(content: bytes, folder: str) -> Iterator[str]:
    """Yield dotted names of the modules, and of the names in them, that a file imports."""
    for node in ast.walk(_tree(content)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder.split("/")[: len(folder.split("/")) + 1 - node.level] if node.level else []
            module = ".".join((*above, *([node.module] if node.module else [])))
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


@cache
def _texts(content: bytes) -> frozenset[str]:
    """The texts in a file's code; of a text with formatted values, each part."""
    nodes = ast.walk(_tree(content))
    return frozenset(one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str))


@cache
def _plain(content: bytes) -> bytes:
    return repr(_form(_tree(content))).encode()


def _form(node: object) -> object:
    """The syntax tree without imports, docstrings, positions and empty fields, which differ by version of Python."""
    if isinstance(node, list):
        return [_form(one) for one in node if not isinstance(one, ast.Import | ast.ImportFrom) and not _is_text(one)]
    if not isinstance(node, ast.AST):
        return _FOLDERS.sub("", node) if isinstance(node, str) else node
    fields = [(name, _form(value)) for name, value in ast.iter_fields(node)]
    return type(node).__name__, [(name, value) for name, value in fields if value is not None and value != []]


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _shared() -> dict[str, str]:
    """The path below the shared data of each file there, by path and by name; empty if there are no shared data."""
    paths = [path.relative_to(SHARED_DATA).as_posix() for path in SHARED_DATA.rglob("*") if path.is_file()]
    return {key: path for path in sorted(paths) for key in (path, path.rpartition("/")[2])}
