"""The source of what is installed, as syntax trees whose names are followed to the modules that they come from."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.support import ROOT

__all__ = ["ROOMS", "full_name", "imports", "trees"]

ROOMS = ("topompi", "schedules", "mapping", "osu_like_bench")


@cache
def trees() -> dict[str, ast.Module]:
    """The tree of each module, by its path below the root."""
    paths = [path for room in ROOMS for path in sorted((ROOT / room).glob("**/*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_bytes()) for path in paths}


def imports(tree: ast.Module) -> dict[str, str]:
    """The full name of each imported name, also if it is imported under another one."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.split(".")[0]] = one.name if one.asname else one.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            found.update({one.asname or one.name: f"{home}.{one.name}" for one in node.names})
    return found


def full_name(node: ast.AST, known: dict[str, str]) -> str:
    """The full name that an expression stands for, ``os.open`` or ``.files.read_text``; empty for other expressions.

    :param node: the expression.
    :param known: full names of the module's imported names.
    """
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute) and (base := full_name(node.value, known)):
        return f"{base}.{node.attr}"
    return ""


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    """All calls of a module."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))
