"""One way in and out: files, foreign programs and texts of users are opened, run and parsed by the shared helpers."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import full_name, imports, trees

HELPERS = ("topompi/inputs/", "topompi/machine/daemon/", "topompi/guard.py")  # the rooms of the helpers themselves
# Full names of what opens, runs or parses, as patterns, and what takes their place.
RULES = {
    r"(builtins|io|codecs)\.open(_code)?|io\.FileIO": "inputs.files, inputs.writing",
    r"os\.(open|fdopen)": "inputs.files, inputs.writing, inputs.appending, inputs.kernel",
    r"os\.(replace|rename|renames|link|symlink)|shutil\.(copy|copy2|copyfile|move)": "inputs.writing",
    r"os\.(system|popen|exec\w+|spawn\w+|posix_spawnp?)": "inputs.programs.run_program",
    r"subprocess\.\w+|asyncio\.create_subprocess_\w+": "inputs.programs.run_program",
    r"json\.(load|loads|JSONDecoder|decoder\.\w+)": "inputs.jsontext.parse_json",
    r"csv\.(reader|DictReader|writer|DictWriter|Sniffer)": "inputs.csvtext",
    r"sqlite3\.(connect|dbapi2\.connect)|dbm\.open|shelve\.\w+": "the ledger",
    r"numpy\.(load|loadtxt|genfromtxt|fromfile|fromregex|memmap)": "inputs.files",
    r"(zipfile|tarfile)\.(open|ZipFile|TarFile\.\w+|is_\w+)|(gzip|lzma|bz2)\.(open|\w+File)": "inputs.files",
    r"yaml\.(\w*load\w*|compose\w*|parse|scan)": "inputs.yamlvalues",
    r"xml\.(etree\.ElementTree|dom\.\w+|sax)\.(parse\w*|iterparse|fromstring|XML\w*)": "topology.inside.hwlocxml",
    r"(pickle|_pickle|marshal|dill|cloudpickle|joblib)\.\w+": "nothing: pickles run code",
    r"tempfile\.\w+": "inputs.unpacking",
}
METHODS = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "touch",
    "tofile",
    "savefig",
    "savemat",
    "savez",
    "savetxt",
}
METHODS |= {"savez_compressed"}
MODES = {"mode", "encoding", "errors", "newline", "buffering"}
KERNEL = "files of the kernel and counters in shared memory, held by descriptor so that no name is followed twice"
FOLDERS = "a folder of this process alone, mode 0700, for files of other programs, which the helpers then read or write"
NETWORK = "root's emulated network: its daemons and ranks run until they are ended, and its folders are root's"
# Where a rule does not hold: beginning of the file's path, pattern of the name, reason.
EXCEPTIONS = (
    ("topompi/machine/shutter/", r"os\.(open|fdopen)", KERNEL),
    ("topompi/cli/colocate/measure.py", r"tempfile\.TemporaryDirectory", FOLDERS),
    ("topompi/cli/topology/discover.py", r"tempfile\.TemporaryDirectory", FOLDERS),
    ("topompi/mpi/profile/monitored.py", r"tempfile\.TemporaryDirectory", FOLDERS),
    ("topompi/mpi/profile/monitored.py", r"subprocess\.run", "runs the user's program as it is, without a time limit"),
    ("topompi/machine/colocation/measuring/running.py", r"subprocess\.\w+", "runs users' programs on chosen cores"),
    (
        "topompi/machine/colocation/measuring/running.py",
        r"tempfile\.TemporaryFile",
        "a program's errors, without a name",
    ),
    (
        "topompi/machine/colocation/prices/accounts.py",
        r"sqlite3\.connect",
        "the ledger, which compares the whole schema first",
    ),
    (
        "topompi/mpi/launcher/program.py",
        r"io\.open_code|zipfile\.is_zipfile",
        "a user's program, opened as Python does",
    ),
    ("topompi/mpi/preload/elf.py", r"builtins\.open", "a program of any length, of which a few bytes are looked at"),
    ("topompi/mpi/preload/launching.py", r"os\.execve", "the user's program, which takes the place of the launcher"),
    ("topompi/mpi/prediction/predictor.py", r"pickle\.dumps", "a key in memory, which is never read"),
    ("topompi/topology/discover/archive.py", r"tarfile\.open", "writes an archive to a stream of open_output"),
    ("mapping/readers/npz.py", r"numpy\.load|zipfile\.ZipFile", "bytes that are read, whose headers are checked first"),
    ("osu_like_bench/emulate/", r"subprocess\.\w+|os\.open|builtins\.open|Path\.(open|touch)|os\.replace", NETWORK),
)


def _is_opened_path(call: ast.Call) -> bool:
    """Whether ``X.open(...)`` opens a path; streams of inputs are opened without arguments."""
    assert isinstance(call.func, ast.Attribute)
    opened = call.func.value.func if isinstance(call.func.value, ast.Call) else call.func.value
    mode = call.args[:1] and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    named = MODES & {one.arg for one in call.keywords}
    return bool(mode or named) or bool(re.search(r"[Pp]ath|/", ast.unparse(opened)))


def _method(call: ast.Call, known: dict[str, str]) -> str:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return ""
    if (name := full_name(function, known)) and not name.startswith("numpy."):
        return ""
    if function.attr == "open":
        return "Path.open" if _is_opened_path(call) else ""
    on_stream = call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in ("stream", "file")
    return f"Path.{function.attr}" if function.attr in METHODS and not on_stream else ""


def strays(source: ast.Module) -> Iterator[str]:
    """Names that a module opens, runs or parses with, beside the helpers."""
    known = imports(source)
    annotations = {id(one) for node in ast.walk(source) for field in ("annotation", "returns")
                   if (at := getattr(node, field, None)) for one in ast.walk(at)}  # fmt: skip
    for node in ast.walk(source):
        name = full_name(node, known) if isinstance(node, ast.Name | ast.Attribute) else ""
        if isinstance(node, ast.Call):
            name = _method(node, known)
            name = name or ("builtins.open" if getattr(node.func, "id", "") == "open" and "open" not in known else "")
        is_stray = name.startswith("Path.") or any(re.fullmatch(rule, name) for rule in RULES)
        if is_stray and id(node) not in annotations:
            yield name


def _helper(name: str) -> str:
    """The shared helper to call in place of a name."""
    return next((way for rule, way in RULES.items() if re.fullmatch(rule, name)), "inputs.files, inputs.writing")


def test_files_and_programs_and_texts_of_users_pass_through_the_shared_helpers() -> None:
    found = {(path, name) for path, tree in trees().items() if not path.startswith(HELPERS) for name in strays(tree)}
    allowed = {
        (path, name, rule)
        for path, name in found
        for rule, (start, pattern, _) in enumerate(EXCEPTIONS)
        if path.startswith(start) and re.fullmatch(pattern, name)
    }
    wrong = found - {one[:2] for one in allowed}
    assert sorted(f"{path}: {name}: expecting {_helper(name)}" for path, name in wrong) == []
    assert {rule for *_, rule in allowed} == set(range(len(EXCEPTIONS))), "an exception that nobody needs"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("open('f')", "builtins.open"),
        ("from io import open as o\no('f')", "io.open"),
        ("import os as system\nsystem.open('f', 0)", "os.open"),
        ("from os import fdopen\nfdopen(3)", "os.fdopen"),
        ("from pathlib import Path\nPath('f').read_text()", "Path.read_text"),
        ("def f(one): return one.write_bytes(b'')", "Path.write_bytes"),
        ("def f(one): return one.open(errors='replace')", "Path.open"),
        ("def f(path): return path.open()", "Path.open"),
        ("import json as j\nj.loads('1')", "json.loads"),
        ("from json import load\nmap(load, [])", "json.load"),
        ("import json\njson.JSONDecoder().raw_decode('1')", "json.JSONDecoder"),
        ("from csv import reader as rows\nrows([])", "csv.reader"),
        ("import sqlite3\nsqlite3.connect('f')", "sqlite3.connect"),
        ("from subprocess import run\nrun(['ls'])", "subprocess.run"),
        ("import asyncio\nasyncio.create_subprocess_exec('ls')", "asyncio.create_subprocess_exec"),
        ("import os\nos.execvp('ls', [])", "os.execvp"),
        ("import numpy as np\nnp.genfromtxt('f')", "numpy.genfromtxt"),
        ("import tarfile\ntarfile.open('f')", "tarfile.open"),
        ("from lzma import LZMAFile\nLZMAFile('f')", "lzma.LZMAFile"),
        ("import yaml\nyaml.safe_load('a')", "yaml.safe_load"),
        ("import xml.etree.ElementTree as tree\ntree.iterparse('f')", "xml.etree.ElementTree.iterparse"),
        ("def f():\n    import pickle\n    pickle.loads(b'')", "pickle.loads"),
        ("from tempfile import mkstemp\nmkstemp()", "tempfile.mkstemp"),
        ("import shutil\nshutil.copyfile('f', 'g')", "shutil.copyfile"),
    ],
)
def test_a_stray_is_found_under_any_name_that_it_is_imported_by(source: str, name: str) -> None:
    assert name in set(strays(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "from topompi.inputs import open_begun\nopen_begun('f', ValueError, 'x').open()",
        "import json\njson.dumps(1)",
        "import subprocess\ndef f(job: subprocess.Popen[str]) -> None: pass",
        "from topompi.inputs import read_text\nread_text('f', ValueError, 'x')",
        "def f(figure, stream): figure.savefig(stream)",
    ],
)
def test_helpers_and_annotations_are_no_strays(source: str) -> None:
    assert set(strays(ast.parse(source))) == set()


# --- Searches count their work: no room that thinks reads a clock, so that results do not depend on the load.


THINKING = (
    *("mapping/", "schedules/", "topompi/network/", "topompi/netsim/", "topompi/views/", "topompi/mpi/prediction/"),
    *("topompi/mpi/communicator/remap/", "topompi/cli/map/", "topompi/cli/profile/"),
    *(f"topompi/mpi/profile/{name}.py" for name in ("summary", "advice", "neighbouradvice", "seconds", "analysis")),
    *(f"topompi/machine/colocation/{room}/" for room in ("pairing", "prediction", "rules", "scheduling")),
    *("topompi/machine/jobs/", "topompi/machine/interference/"),
)
READING = "mapping/readers/text.py"  # refuses a file that takes too long to read


def test_no_room_that_thinks_imports_a_clock() -> None:
    found = {
        path: {name.partition(".")[0] for name in imports(tree).values()} & {"time", "datetime", "timeit", "signal"}
        for path, tree in trees().items()
        if path.startswith(THINKING)
    }
    assert [room for room in THINKING if not any(path.startswith(room) for path in found)] == []
    assert [path for path, clocks in found.items() if clocks] == [READING]
