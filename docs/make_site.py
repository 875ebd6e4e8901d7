"""Hooks of mkdocs: pages made from the command line and the docstrings, pages from outside ``docs``, and their links.

``make docs`` builds ``site/``; nothing that is made here is kept in the repository.
"""

from __future__ import annotations

import inspect
import os
import posixpath
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import mpi4py
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # mkdocs runs this file by its path
mpi4py.rc.initialize = False  # benchmarks import MPI before they look at their command line; nothing here calls it

from docs.commandline import commands, render  # noqa: E402 # found by the line above
from topompi.mpi.launcher import USAGE  # noqa: E402 # found by the same line

# Pages and pictures that stand elsewhere in the repository -> where they stand in the site.
OUTSIDE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "examples/stencil3d/README.md": "examples/stencil3d.md",
    "examples/cg/README.md": "examples/cg.md",
    "examples/sparse/README.md": "examples/sparse.md",
    "examples/fft3d/README.md": "examples/fft3d.md",
    "tests/walks/README.md": "project/walks.md",
    "examples/stencil3d/pulse.png": "examples/pulse.png",
    "examples/cg/potential.png": "examples/potential.png",
    "examples/fft3d/taylor-green.png": "examples/taylor-green.png",
}
INSIDE = {site: outside for outside, site in OUTSIDE.items()}
PROGRAMS = {
    "topompi": "Commands for fabrics, schedules, mapping, profiles and jobs. None but `tune` starts MPI.",
    "osu_like_bench": "Benchmarks, on real, emulated and simulated networks: `osu_like_bench ...`, or `python -m\n"
    "osu_like_bench ...`. A benchmark runs under `mpirun`, the other commands without it.",
}
PACKAGES = (
    "topompi",
    "topompi.topology",
    "topompi.schedules",
    "topompi.mapping",
    "topompi.netsim",
    "topompi.machine.jobs",
)
PACKAGES += (
    "topompi.machine.colocation",
    "topompi.machine.shutter",
    "topompi.machine.interference",
    "topompi.network",
    "topompi.views",
    "topompi.mpi.profile",
    "topompi.errors",
)
_FILE = re.compile(r"^(```\w+) file=(\S+)$", re.MULTILINE)
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add what is made, and what stands outside."""
    made = {f"reference/{name}.md": _program_page(name, about) for name, about in PROGRAMS.items()}
    made["reference/launcher.md"] = f"# The launcher\n\n```text\n{USAGE}```\n"
    made |= {f"reference/python/{name}.md": _package_page(name) for name in PACKAGES}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    for outside, path in OUTSIDE.items():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / outside)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links across the border of ``docs`` to where their targets stand in the site, and give files titles."""
    here = page.file.src_uri
    source = INSIDE.get(here, f"docs/{here}")
    moved = _LINK.sub(lambda link: f"{link[1]}{_moved(link[2], source, here)}{link[3]}", markdown)
    # The site's fences take no options but those of the highlighter: with others they are none, and hide what follows.
    return _FILE.sub(r'\1 title="\2"', moved)


def _moved(target: str, source: str, here: str) -> str:
    """A link of a file of the repository, as the page of the site has it."""
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if wanted not in OUTSIDE and not wanted.startswith("docs/"):
        return target
    there = OUTSIDE.get(wanted, wanted.removeprefix("docs/"))
    return os.path.relpath(there, posixpath.dirname(here) or ".").replace(os.sep, "/")


def _program_page(name: str, about: str) -> str:
    return "\n".join([f"# `{name}`", "", about, "", *(render(entry) for entry in commands(name))])


def _package_page(name: str) -> str:
    """A package: what it is, its classes and functions by their docstrings, and what else it holds."""
    module = import_module(name)
    values = {one: getattr(module, one) for one in getattr(module, "__all__", ()) if not one.startswith("__")}
    coded = {one for one, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)}
    parts = [f"# `{name}`", inspect.getdoc(module) or "", *(f"::: {name}.{one}" for one in values if one in coded)]
    if coded != set(values):
        rows = [f"| `{one}` | {_held(value)} |" for one, value in values.items() if one not in coded]
        parts.append("\n".join(["## Constants", "", "| name | value |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def _held(value: Any) -> str:
    return ", ".join(f"`{one}`" for one in value) if isinstance(value, dict | tuple) else f"`{value!r}`"
