"""How large the project is: ``python -m tests.support.counts`` prints lines, words, commands and algorithms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs import commandline
from topompi.schedules import ALGORITHMS

__all__ = ["commands", "counts", "long_options", "state_of_a_communicator"]

ROOT = Path(__file__).parents[2]
INSTALLED = ("topompi", "schedules", "mapping", "osu_like_bench")


def commands() -> list[str]:
    """Return the words that name each command of ``topompi``, such as ``topology show``."""
    return [" ".join(entry.words[1:]) for entry in commandline.commands("topompi")]


def long_options() -> dict[str, list[str]]:
    """Return, for each long option of ``topompi`` by its name, the commands that have it."""
    found: dict[str, list[str]] = {}
    for entry in commandline.commands("topompi"):
        for parameter in entry.command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                if name.startswith("--"):
                    found.setdefault(name, []).append(" ".join(entry.words[1:]))
    return found


def counts() -> dict[str, int]:
    """Return the size of each part of the project by what is counted."""
    code = [text for room in INSTALLED for text in _texts(room, "*.py")]
    slots, classes = state_of_a_communicator()
    return {
        "Python lines installed": _lines(code),
        "C lines": _lines([*_texts("topompi", "*.[ch]"), *_texts("mapping", "*.[ch]"), *_texts("schedules", "*.[ch]")]),
        "registered algorithms": sum(map(len, ALGORITHMS.values())),
        "commands": len(commands()),
        "long options": len(long_options()),
        "words of guides": _words(
            [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")]
        ),
        "words of lab": _words((ROOT / "docs/lab").glob("*.md")),
        "lines of tests": _lines(_texts("tests", "*.py")),
        "programs of benchmarks": sum(1 for text in _texts("benchmarks", "*.py") if "__main__" in text),
        "Any": sum(len(re.findall(r"\bAny\b", text)) for text in code),
        "type: ignore": sum(text.count("type: ignore") for text in code),
        "packages under topompi": sum((one / "__init__.py").exists() for one in (ROOT / "topompi").iterdir()),
        "attributes of a communicator's handle": len(slots),
        "classes of the state behind them": len(classes),
    }


def state_of_a_communicator() -> tuple[list[str], list[str]]:
    """Return the slots of a communicator's handle, and the classes of the objects that can be reached from them.

    Counted are the classes of the rooms ``communicator`` and ``dispatch``, reached by public attributes.
    """
    files = [file for room in ("communicator", "dispatch") for file in (ROOT / "topompi/mpi" / room).glob("*.py")]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    classes = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    slots = [ast.unparse(one.target) for one in classes["Handle"].body if isinstance(one, ast.AnnAssign)]
    found, new = {"Handle"}, {"Handle"}
    while new:
        types = [one for name in new for one in _types_of_attributes(classes[name])]
        new = {node.id for one in types for node in ast.walk(one) if isinstance(node, ast.Name)} & {*classes} - found
        found |= new
    return slots, sorted(found - {"Handle"})


def _types_of_attributes(kind: ast.ClassDef) -> Iterator[ast.expr]:
    """Yield the annotations of a class's public attributes, slots, properties, and parameters."""
    for node in ast.walk(kind):
        if isinstance(node, ast.AnnAssign) and (node in kind.body or re.match("self[.][^_]", ast.unparse(node.target))):
            yield node.annotation
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from (one.annotation for one in node.args.args if one.annotation is not None)
        if isinstance(node, ast.FunctionDef) and node.decorator_list and node.returns is not None:
            yield node.returns


def _texts(room: str, pattern: str) -> list[str]:
    """Return the texts of a folder's files; those behind its links are counted where they stand."""
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / room).rglob(pattern)) if not path.is_symlink()]


def _lines(texts: Iterable[str]) -> int:
    return sum(text.count("\n") for text in texts)


def _words(pages: Iterable[Path]) -> int:
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


if __name__ == "__main__":
    for name, count in counts().items():
        print(f"{count:>8,}  {name}")
