"""Properties of every command line: help, version, completion, encodings, and no MPI library."""

import os
import subprocess
import sys
from contextlib import nullcontext
from functools import cache

import pytest
import typer

import topompi
from docs import commandline
from tests.support import ROOT, command_line, counts
from topompi.cli.former import FORMER, present_spelling
from topompi.cli.setup.env import variables
from topompi.mpi.launcher import launch

GROUPS = ["", "topology", "profile", "slurm", "jobs", "colocate", "shutter"]
BENCH = ["compare", "simulate", "emulate", "emulate run"]


def run(words, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment)


@pytest.fixture
def without_mpi(tmp_path):
    """An mpi4py that finds no MPI library, and says so in sixty lines."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    lines = "cannot load MPI library" + "\\nlibmpi.so.40: no such file" * 60
    (tmp_path / "mpi4py" / "MPI.py").write_text(f'raise RuntimeError("{lines}")\n')
    return {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


@pytest.mark.parametrize("module", ["topompi", "osu_like_bench"])
def test_every_command_has_short_help_and_a_version(module):
    commands = [*GROUPS, *counts.commands()] if module == "topompi" else BENCH
    program = (
        "import io, sys; from contextlib import redirect_stdout; from importlib import import_module\n"
        f"main = import_module('{module}.__main__').main\n"
        f"for command in {commands!r}:\n"
        "    for option, told in (('-h', 'Usage'), ('--version', ' 0.')):\n"
        f"        sys.argv, out = ['{module}', *command.split(), option], io.StringIO()\n"
        "        with redirect_stdout(out):\n"
        "            try:\n"
        "                code = main()\n"
        "            except SystemExit as end:\n"
        "                code = end.code\n"
        "        assert not code and told in out.getvalue(), (command, option, out.getvalue())\n"
    )
    done = run(["-c", program])
    assert done.returncode == 0, done.stderr


@cache
def modules_of(*words):
    """The modules that a command has imported when it ends."""
    program = (
        f"import sys; sys.argv = ['topompi', *{list(words)!r}]\n"
        "from topompi.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = run(["-c", program])
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def test_no_command_imports_scipy_before_it_needs_it():
    every = "from tests.support.counts import commands; commands()"
    told = run(["-c", f"{every}; import sys; print({{one for one in sys.modules if one.startswith('scipy')}})"])
    assert told.stdout == "set()\n", told.stderr


def test_help_imports_no_command_and_a_command_no_other_group():
    assert not [name for name in modules_of("--help") if name.startswith(("numpy", "topompi.topology"))]
    found = modules_of("jobs", "check", "--help")
    groups = {name.split(".")[2] for name in found if name.startswith("topompi.cli.") and name.count(".") > 2}
    assert groups == {"jobs"}


# Modules of ours at most, by command: the start-up time grows with them. Lower a number when it falls.
@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("--help", 17),
        ("topology show --help", 158),
        ("map --help", 155),
        ("jobs check --help", 170),
        ("schedule --help", 172),
        ("profile --help", 128),
    ],
)
def test_a_command_starts_with_few_modules(words, most):
    assert sum(name.startswith("topompi") for name in modules_of(*words.split())) <= most


def test_the_list_of_commands_says_what_each_says_of_itself():
    from typer.main import get_command

    from topompi.cli.app import COMMANDS, app

    group = get_command(app)
    for name in COMMANDS:
        command = group.get_command(None, name)
        assert COMMANDS[name][1] == " ".join(command.help.split("\n\n")[0].split()), name


def test_help_lists_first_what_to_do_first():
    told = command_line("--help").stdout
    places = [told.index(f" {word} ") for word in ("demo", "doctor", "topology", "schedule")]
    assert places == sorted(places)
    assert "tutorial" in told


def test_the_command_line_stays_small():
    assert len(counts.commands()) <= 40
    assert len(counts.long_options()) <= 110


def test_one_word_names_a_fabric_and_the_variable_stands_for_it():
    for entry in commandline.commands("topompi"):
        for one in entry.command.params:
            names = {*one.opts, one.name}
            is_source = "--topology" in names or (one.param_type_name == "argument" and one.name == "source")
            assert is_source == (getattr(one, "envvar", None) == "TOPOMPI_TOPOLOGY"), (entry.words, names)


@pytest.mark.parametrize("entry", commandline.commands("topompi"), ids=lambda entry: " ".join(entry.words[1:]))
def test_an_option_with_one_value_is_refused_if_it_is_given_twice(entry):
    """Click takes the last value, so that a user would get an answer to another question."""
    for one in entry.command.params:
        if one.param_type_name == "option" and not (one.is_flag or one.count):
            words = [word for value in "12" for word in (one.opts[-1], value)]
            refuses = pytest.raises(typer.BadParameter, match="expecting it once, got it 2 times")
            with nullcontext() if one.multiple else refuses:
                entry.command.make_parser(entry.context()).parse_args(words)


def answers(option):
    """Return the answer of each command to a former option; the keys are the commands' words."""
    found = {}
    for entry in commandline.commands("topompi"):
        try:
            entry.command.make_parser(entry.context()).parse_args([option, "x"])
        except Exception as error:  # click's or typer's own classes, whichever brings them
            if (told := present_spelling(error)) is not None:
                found[" ".join(entry.words[1:])] = told
    return found


OPTIONS = [told for told in FORMER if " --" in f" {told}"]


@pytest.mark.parametrize("told", OPTIONS)
def test_a_former_option_answers_with_the_present_one_in_the_commands_that_take_that(told):
    *path, last = told.split()
    present, given = f"{told} is now {FORMER[told]}", answers(last)
    of = " ".join(path)
    assert given.get(of) == present if path else present in given.values()
    for command, words in given.items():
        answer = words.partition(" is now ")[2]
        if answer.startswith("-"):
            option = answer.partition(" ")[0].rstrip(",")
            assert not commandline.misnamed(["topompi", *command.split(), option]), (command, words)


@pytest.mark.parametrize(
    ("command", "option", "known"),
    [
        ("jobs check", "--links", False),
        ("jobs replay", "--links", True),
        ("jobs lanes", "--hop-lanes", False),
        ("jobs replay", "--hop-lanes", True),
        ("jobs lanes", "--by-routes", False),
        ("topology links", "--by-routes", True),
        ("map", "--eager", False),
        ("doctor", "--plot", False),
    ],
)
def test_a_command_never_answers_with_a_setting_or_a_word_of_others(command, option, known):
    assert (command in answers(option)) == known


@pytest.mark.parametrize("told", [told for told in FORMER if told not in OPTIONS])
def test_a_former_spelling_answers_with_the_present_one(told):
    *path, last = told.split()
    if last == "SOURCE":
        done = command_line(*path, "xgft:2,2;1,1", "a", "b", "c")
    else:
        assert told not in counts.commands()
        done = command_line(*path, last, "--json")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("mpi")]
    assert (done.returncode, lines) == (2, [f"topompi: {told} is now {FORMER[told]}"])


def test_shells_complete_commands():
    words = {"_TOPOMPI_COMPLETE": "complete_bash", "COMP_WORDS": "topompi topology sh", "COMP_CWORD": "2"}
    done = run(["-m", "topompi"], **words)
    assert done.stdout.split() == ["show"], done.stderr


@pytest.mark.parametrize("words", [["nosuch.py"], ["--verbose", "nosuch.py", "x"], ["folder/nosuch"]])
def test_a_program_that_is_not_there_is_named(words):
    done = run(["-m", "topompi", *words])
    name = next(word for word in words if "nosuch" in word)
    assert (done.returncode, done.stderr) == (1, f"topompi: {name}: no such file\n")


@pytest.mark.parametrize("word", ["-m", "-c"])
def test_a_program_without_its_name_ends_with_the_status_of_mpi4py(word, capsys):
    with pytest.raises(SystemExit) as ended:
        launch([word])
    assert (ended.value.code, capsys.readouterr().err) == (1, f"topompi: expecting an argument after {word}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "topompi", "-c", "from mpi4py import MPI"],
        ["-m", "topompi", "tune", "bcast"],
        ["-m", "osu_like_bench", "bcast"],
    ],
)
def test_without_an_mpi_library_one_line_says_what_to_do(without_mpi, words):
    done = run(words, **without_mpi)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for part in ("cannot load MPI library", "[mpi]", "module load", "MPI4PY_MPIABI"):
        assert part in done.stderr


def test_without_an_mpi_library_a_program_gets_one_error(without_mpi):
    done = run(["-c", "import topompi; topompi.Intracomm"], **without_mpi)
    assert "During handling" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("topompi.errors.MPILibraryError: expecting an MPI library, got none")
    assert len(done.stderr.splitlines()) < 12


def test_names_are_listed_and_completed(without_mpi):
    code = "import topompi; print(dir(topompi)); from topompi import schedules; print(topompi.topology.load.__name__)"
    done = run(["-c", code], **without_mpi)
    assert done.returncode == 0, done.stderr
    for name in ("Intracomm", "Cartcomm", "topology", "schedules", "mapping"):
        assert repr(name) in done.stdout


# Each word after the program's is run in a child of its own, which has imported nothing but topompi.
CHILDREN = """
import os, sys, topompi
for code in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            exec(code)
        except ImportError as error:
            print(type(error).__name__, error, flush=True)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_a_public_room_is_an_attribute_after_import_topompi_alone(without_mpi):
    codes = [f"print(topompi.{room}.__name__, {room!r} in dir(topompi))" for room in topompi.ROOMS]
    done = run(["-c", CHILDREN, *codes], **without_mpi)
    assert (done.stdout.splitlines(), done.stderr) == ([f"topompi.{room} True" for room in topompi.ROOMS], "")


def test_a_former_path_answers_with_the_present_one_which_opens_by_itself(without_mpi):
    codes, answers = [], []
    for room, half in topompi.FORMER.items():
        told = f"ModuleNotFoundError topompi.{room} is now topompi.{half}.{room}"
        lines = [f"import topompi.{room}.errors", f"from topompi.{room} import errors", f"from topompi import {room}"]
        lines = lines[:2] if room == "profile" else lines  # a function has this name now
        codes, answers = codes + lines, answers + [told] * len(lines)
        if half == "machine":
            codes.append(f"print(topompi.{half}.{room}.__name__)")
            answers.append(f"topompi.{half}.{room}")
    done = run(["-c", CHILDREN, *codes], **without_mpi)
    assert (done.stdout.splitlines(), done.stderr) == (answers, "")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("TOPOMPI_HOST", "TOPOMPI_HOSTS"),
        ("TOPOMPI_TOPOLGY", "TOPOMPI_TOPOLOGY"),
        ("TOPOMPI_RULE", "TOPOMPI_RULES"),
        ("TOPOMPI_hosts", "TOPOMPI_HOSTS"),
        ("TOPOMI_VERBOSE", "TOPOMPI_VERBOSE"),
        ("TOPOMPIHOSTS", "TOPOMPI_HOSTS"),
        ("TOPOMPI_ROOT", ""),
        ("OMPI_PROFILE", None),
        ("HOSTS", None),
    ],
)
def test_a_misspelt_variable_is_listed_with_the_nearest_name(name, nearest):
    found = [one for one in variables({name: "x"}) if one.origin == "unknown"]
    words = f"topompi has no such variable{nearest and f'; the nearest is {nearest}'}"
    assert [(one.name, one.meaning) for one in found] == ([] if nearest is None else [(name, words)])


def test_settings_that_resemble_ours_are_refused_and_others_are_told_of(capsys):
    from topompi.errors import SettingError
    from topompi.inputs.settings import check_settings

    check_settings({"TOPOMPI_ROOT": "/opt/topompi", "TOPOMPI_TUNE": "off", "HOME": "/"})
    assert capsys.readouterr().err == "topompi: TOPOMPI_ROOT: no variable of topompi's, and left alone\n"
    for name, meant in (("TOPOMPI_HOST", "TOPOMPI_HOSTS"), ("TOPOMPI_RULE", "TOPOMPI_RULES")):
        with pytest.raises(SettingError, match=f"{name}: expecting a variable that topompi has, such as {meant}"):
            check_settings({name: "x"})
