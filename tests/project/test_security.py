"""SECURITY.md names all that runs as root, listens, or has a mode of its own; a new one fails until it is named."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import trees
from tests.support import ROOT

LISTENERS = {"served", "create_server", "start_server", "start_unix_server", "listen", "ThreadingHTTPServer"}
RIGHTS = {"geteuid", "getuid", "require_own_code", "check_rights"}
MODES = {"open_growing": "0600", "AppendedLines": "0640", "write_cache": "0600", "replace_file": "0600"}
SETTERS = {"open", "mkdir", "makedirs", "chmod", "fchmod", "touch", "put", "umask"}


def rows(heading: str) -> dict[str, str]:
    """Row of the table under a heading, by each module that the row names."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return {path: line for line in lines for path in re.findall(r"`([\w/]+\.py)`", line)}


def name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def rights(tree: ast.Module) -> Iterator[str]:
    """Comparisons of the user's number with root's, and calls of the checks of root's code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and name_of(node.left) in RIGHTS:
            if any(isinstance(one, ast.Constant) and one.value == 0 for one in node.comparators):
                yield "root"
        elif isinstance(node, ast.Call) and name_of(node) in ("require_own_code", "check_rights"):
            yield name_of(node)


def listeners(tree: ast.Module) -> Iterator[str]:
    """Calls that listen at a port or a socket's path, and classes that do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (one.id for one in node.bases if isinstance(one, ast.Name) and one.id in LISTENERS)
        elif isinstance(node, ast.Call):
            is_socket = name_of(node) == "bind" and len(node.args) == 1
            if is_socket or name_of(node) in LISTENERS:
                yield name_of(node)


def modes(tree: ast.Module) -> Iterator[str]:
    """Modes, as four digits, that a module gives files, folders or its umask."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if name_of(node) in MODES:
            yield MODES[name_of(node)]
        if any(
            one.arg == "private" and isinstance(one.value, ast.Constant) and one.value.value for one in node.keywords
        ):
            yield "0600"
        given = [*node.args, *(one.value for one in node.keywords if one.arg == "mode")]
        if name_of(node) in SETTERS:
            numbers = (one.value for one in given if isinstance(one, ast.Constant))
            yield from (f"{number:04o}" for number in numbers if type(number) is int and number > 7)


@pytest.mark.parametrize(
    ("heading", "find"),
    [("What root runs", rights), ("What listens", listeners), ("Files that topompi writes", modes)],
)
def test_the_page_names_each_module_that_the_code_has_and_no_other(heading, find) -> None:
    found = {path for path, tree in trees().items() if any(find(tree))}
    assert sorted(found) == sorted(rows(heading))


def test_the_page_gives_the_modes_that_stand_in_the_code() -> None:
    named = rows("Files that topompi writes")
    wrong = [(path, mode) for path, tree in trees().items() for mode in modes(tree) if mode not in named.get(path, "")]
    assert wrong == []


@pytest.mark.parametrize(
    ("find", "source"),
    [
        (rights, "if os.geteuid() != 0: pass"),
        (rights, "require_own_code('x')"),
        (listeners, "made.bind('path')"),
        (listeners, "await asyncio.start_unix_server(f, path='p')"),
        (listeners, "with served(('', 0), {}): pass"),
        (listeners, "class Server(ThreadingHTTPServer): pass"),
        (modes, "write_text('f', 'x', private=True)"),
        (modes, "open_growing('f', ValueError)"),
        (modes, "os.mkdir('f', 0o755)"),
        (modes, "os.open('f', flags, mode=0o600)"),
    ],
)
def test_a_new_one_is_found(find, source: str) -> None:
    assert any(find(ast.parse(source)))
