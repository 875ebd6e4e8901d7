"""The documents of the repository: their pages, the blocks in them, and the commands that they show."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from docs.commandline import fault, misnamed
from tests.support import ROOT

__all__ = ["BLOCK", "DOCUMENTS", "OTHERS", "Shown", "faults", "shown"]

DOCUMENTS = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "examples").glob("*/README.md")]
BLOCK = re.compile(r"^ *```(\w*)(?: file=(\S+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELLS = ("console", "sh", "text", "ini", "")
OURS = ("topompi", "osu_like_bench")
# A command line: variables, or systemd's key, then our programs, make, or a program that starts others.
_STARTS = re.compile(
    r"(?:ExecStart=|(?:\w+=\S* +)*)(?:\S*/)?"
    r"(?:topompi|osu_like_bench|make|python3?|mpirun|mpiexec|srun|sbatch|salloc|sudo|exec|sh) "
)
_INNER = re.compile(r"\$\(([^()]+)\)")
_INLINE = re.compile(r"`((?:topompi|osu_like_bench|make|python -m \w[\w.]*)(?:\s[^`]*)?)`")
_TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

Shown = tuple[str, bool]  # a command line, and whether it is whole: prose names commands without what they need


def shown(page: Path) -> Iterator[Shown]:
    """The commands of a page: the lines of its blocks, whole, then those that its prose names."""
    text = page.read_text(encoding="utf-8")
    for kind, _, content in BLOCK.findall(text):
        if kind in SHELLS:
            lines = re.sub(r" *\\\n\s*", " ", content).splitlines()
            bare = [re.sub(r"^\s*(\$ )?", "", line) for line in lines]
            inner = [command.strip() for line in bare for command in _INNER.findall(line)]
            yield from ((_INNER.sub("...", line), True) for line in (*bare, *inner) if _STARTS.match(line))
    for words in _INLINE.findall(BLOCK.sub("", text)):
        yield " ".join(words.split()), False


def faults(line: str, whole: bool) -> Iterator[str]:
    """What the shell, the command line or the Makefile would refuse of a line."""
    for words in _parts(line):
        yield from filter(None, (_fault(words, whole),))


def _parts(line: str) -> Iterator[list[str]]:
    """The simple commands of a line, without what stands behind ``>``."""
    words: list[str] = []
    reader = shlex.shlex(re.sub(r"[0-9]>(&[0-9])?", ">", line), posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    redirected = False
    for word in [*reader, ";"]:
        if word[0] in "|&;":
            yield words
            words, redirected = [], False
        elif word[0] in "<>":
            redirected = True
        elif not redirected:
            words.append(word)


def _fault(words: list[str], whole: bool) -> str:
    words = [word.removeprefix("ExecStart=") for word in words]
    words = words[next((at for at, word in enumerate(words) if "=" not in word.partition("/")[0]), 0) :]
    if words[:1] == ["make"]:
        return _no_target(words[1:])
    words = words[next((at for at, word in enumerate(words) if _is_program(words, at)), len(words)) :]
    if not words:
        return ""  # another program
    words[0] = words[0].rpartition("/")[2]
    if words[0] in OURS:
        return fault(words) if whole else misnamed(words)
    return _no_module(words)


def _is_program(words: list[str], at: int) -> bool:
    """Whether a word is one of our programs, by its path or under a launcher, or a module that Python runs."""
    if at and words[at - 1] == "-m":
        return any(word.rpartition("/")[2].startswith("python") for word in words[:at])
    return words[at].rpartition("/")[2] in OURS and not any(word.startswith("-") for word in words[max(at - 1, 0) : at])


def _no_target(words: list[str]) -> str:
    absent = [word for word in words if "=" not in word and word not in _TARGETS]
    return f"expecting targets of the Makefile, got {absent}" if absent else ""


def _no_module(words: list[str]) -> str:
    """Whether a module of the repository is missing, or an option that its text does not name."""
    try:
        found = find_spec(words[0])
    except ModuleNotFoundError:
        found = None
    if found is None or found.origin is None:
        return f"expecting a module, got {words[0]}"
    text = Path(found.origin).read_text(encoding="utf-8")
    if words[0] == "studies":
        folder = Path(found.origin).parent
        if words[1:] and f'"{words[1]}"' not in (folder / "__main__.py").read_text(encoding="utf-8"):
            return f"studies: expecting a source, got {words[1]}"
        text = "".join(one.read_text(encoding="utf-8") for one in folder.rglob("*.py"))
    absent = [word for word in words[1:] if word.startswith("--") and f'"{word.partition("=")[0]}"' not in text]
    is_ours = words[0].startswith(("benchmarks.", "studies"))
    return f"{words[0]}: expecting its options, got {absent}" if absent and is_ours else ""
