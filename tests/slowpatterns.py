"""A search, by crafted text, for regular expressions of readers that take more than linear time.

``python -m tests.slowpatterns LENGTH SECONDS`` prints each pattern that takes more than SECONDS for LENGTH characters,
and the text.
"""

import importlib
import pkgutil
import re
import sys
import time
from pathlib import Path

ROOMS = ("topompi", "osu_like_bench")  # every module that is imported without MPI: a new reader is found by itself
UNITS = (
    " ",
    "\t",
    "-",
    ",",
    "=",
    "a",
    "0",
    "1,",
    "a ",
    "0 ",
    "a,",
    ", ",
    "a,=",
    '"',
    '"a" ',
    "[",
    "[0",
    "0x0",
    "a=",
    "a= ",
)
UNITS += (
    ":",
    "a:",
    "#",
    ".",
    "a-",
    "-*",
    "\n",
    " \n",
    "\n#",
    '"format"',
    '"format":',
    "a\t",
    "(",
    "0-0,",
    "0x",
    "MT1",
    "0a",
    "_",
)
UNITS += (
    "' - '",
    '" lid 1',
    "- ",
    "-a",
    "--- ",
    '"id":"',
    '"id" ',
    " =",
    "= ",
    ", 0",
    "Mellanox ",
    "Switch ",
    "\\",
    '{"a":',
    "/*",
    "l1: calc 1 cpu 1 ",
    "1 <not counted> ",
    "send 1b to 1 tag 1 ",
    "1,",
    "1;;",
    "a requires ",
    "1.",
    "@---",
    "__A__",
)
STARTS = (
    "",
    "---",
    "a,a=",
    "a,",
    'a="',
    "a",
    '"',
    "0",
    "[",
    "E 0 0 1 bytes 1 msgs sent",
    "rank 0=h slot=",
    '[1]\t"S-1"[1]',
)
STARTS += ("CA 1 1 0x0000000000000001 4x SDR - CA 2 1 0x0000000000000001 ( '", '[1](a)"S-1"[1](a)#"')
STARTS += ('{"format"', '"id": "', "x:", "- ", "Switch 0x1 ", "Unicast lids [0x0-0x1] of switch ", "vendid=0x", '"S-')


def patterns():
    """Name, pattern, and the methods that its module calls on it."""
    for room in ROOMS:
        package = importlib.import_module(room)
        names = [room, *(one.name for one in pkgutil.walk_packages(package.__path__, f"{room}."))]
        for name in names:
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue  # needs MPI, which tests without it shut out
            if not str(module.__file__).endswith(".py"):
                continue
            text = Path(module.__file__).read_text(encoding="utf-8")
            for key, value in vars(module).items():
                used = set(
                    re.findall(rf"\b{re.escape(key)}\b\.(match|fullmatch|search|findall|finditer|sub|split)\b", text)
                )
                if isinstance(value, re.Pattern) and (used or f"{key} = re" in text):
                    yield f"{name}.{key}", value, sorted(used or {"fullmatch"})
                elif isinstance(value, (tuple, list, dict)) and re.search(rf"^{re.escape(key)}\b.* = ", text, re.M):
                    methods = re.findall(r"\b(?!re\b)[a-z]+\.(match|fullmatch|search|findall|finditer)\b", text)
                    yield from ((f"{name}.{key}", one, sorted({*methods})) for one in within(value))


def within(table):
    """The patterns of a table, which may have tables as its values."""
    for one in table.values() if isinstance(table, dict) else table:
        if isinstance(one, re.Pattern):
            yield one
        elif isinstance(one, (tuple, list, dict)):
            yield from within(one)


def crafted(length):
    """Texts of a length, most of one repeated unit, that hardly match."""
    for start in STARTS:
        for unit in UNITS:
            text = start + unit * (length // len(unit))
            yield text
            yield text + "\x01"


def slowest(pattern, method, length, seconds):
    """The most seconds that a method takes for a text of a length, and the text; it stops once they are too many."""
    worst = (0.0, "")
    for text in crafted(length):
        subject = text.encode() if isinstance(pattern.pattern, bytes) else text
        taken = _seconds(pattern, method, subject)
        if taken > seconds:
            taken = min(taken, _seconds(pattern, method, subject))  # the first time memory may have been short
        worst = max(worst, (taken, text[:24] + "..." + text[-3:]))
        if worst[0] > seconds:
            break
    return worst


def _seconds(pattern, method, subject):
    begun = time.thread_time()  # other processes do not count
    found = getattr(pattern, method)(*(("", subject) if method == "sub" else (subject,)))
    if method == "finditer":
        sum(1 for _ in found)
    return time.thread_time() - begun


def main(length, seconds):
    """Print what takes longer than so many seconds for so many characters."""
    for name, pattern, methods in patterns():
        for method in methods:
            taken, text = slowest(pattern, method, length, seconds)
            if taken > seconds:
                print(f"{name}.{method}: {taken:.3f} s for {text!r}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
