"""Starts of compiled programs: what is loaded into them, and which are left as they are."""

import os
import stat
import sys
import sysconfig
from pathlib import Path

import pytest

from topompi.inputs.settings import VARIABLES
from topompi.mpi.launcher import start
from topompi.mpi.preload import launching
from topompi.mpi.preload.elf import ElfFile

DYNAMIC = ElfFile("/lib64/ld-linux-x86-64.so.2", ("libmpi.so.40",), "")


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setattr(launching, "_library", lambda: "/ours.so")


def test_static_and_privileged_programs_and_an_installation_without_compiler_are_refused(library, monkeypatch):
    assert launching.refusal(DYNAMIC, 0o755) == ""
    assert "statically" in launching.refusal(DYNAMIC._replace(interpreter=""), 0o755)
    for bit in (stat.S_ISUID, stat.S_ISGID):
        assert "another user's rights" in launching.refusal(DYNAMIC, 0o755 | bit)
    monkeypatch.setattr(launching, "_library", lambda: "")
    assert "C compiler" in launching.refusal(DYNAMIC, 0o755)
    monkeypatch.setattr(launching, "_library", lambda: "/a folder/ours.so")
    assert "no blank" in launching.refusal(DYNAMIC, 0o755)


def test_topompis_library_comes_first_and_the_rest_of_the_environment_stays(library):
    made = launching.preloaded({"LD_PRELOAD": "/tool.so", "HOME": "/root"})
    assert made["LD_PRELOAD"].split() == ["/ours.so", "/tool.so"]
    assert (made["HOME"], made["TOPOMPI_PYTHON"]) == ("/root", sys.executable)
    assert {name for name in made if name.startswith("TOPOMPI_")} <= set(VARIABLES)


def test_without_a_shared_python_the_library_gets_the_reason_in_place_of_a_path(library, monkeypatch, tmp_path):
    before = launching.preloaded({})["TOPOMPI_PRELOAD"]
    assert Path(before).exists() == before.startswith("/")
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert "no shared library" in launching.preloaded({})["TOPOMPI_PRELOAD"]


def test_programs_and_scripts_of_other_interpreters_are_told_from_those_for_python(tmp_path):
    lines = {
        "app": b"\x7fELF...",
        "wrapper.sh": b"#!/bin/sh\n",
        "a.py": b"import b\n",
        "tool": b"#!/usr/bin/env python3\n",
    }
    for name, line in lines.items():
        (tmp_path / name).write_bytes(line)
    found = [name for name in lines if launching.compiled_program(str(tmp_path / name))]
    assert found == ["app", "wrapper.sh"]
    assert launching.compiled_program("sh").endswith("/sh")


@pytest.mark.parametrize("name", ["pipe", "both.py"])
def test_pipes_and_files_with_pythons_ending_are_left_to_python_unread(tmp_path, monkeypatch, name):
    path = tmp_path / name
    os.mkfifo(path) if name == "pipe" else path.write_text("#!/bin/sh\n")
    read = []
    monkeypatch.setattr(launching, "first_line", lambda path: read.append(path) or b"#!/bin/sh")
    assert (launching.compiled_program(str(path)), read) == ("", [])


@pytest.mark.parametrize("rank", ["0", "3"])
def test_one_rank_says_why_a_program_is_left_alone_and_each_starts_it(monkeypatch, capsys, tmp_path, rank):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF damaged")
    for name in launching.PROCESS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PMI_RANK", rank)
    started = []
    monkeypatch.setattr(launching.os, "execve", lambda *given: started.append(given))
    launching.start(str(program), ["program", "argument"])
    [(path, words, environment)] = started
    assert (path, words) == (str(program), ["program", "argument"])
    assert "TOPOMPI_PRELOAD" not in environment
    assert capsys.readouterr().err.count("the MPI library runs all collectives") == (rank == "0")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "topompi: run: expecting a program, got none"),
        (["--verbos", "sh"], "topompi: run: expecting a program, got --verbos sh"),
        (["./closed"], "topompi: ./closed: expecting a program that can be started, got Permission denied"),
        (["/no/such"], "topompi: /no/such: no such file"),
        (["--map", "graph", "sh"], "topompi: --map: expecting a Python program"),
    ],
)
def test_the_command_line_says_what_it_expects(monkeypatch, capsys, tmp_path, words, told):
    monkeypatch.setenv("TOPOMPI_MAP", "")
    (tmp_path / "closed").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        start(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(told)


def test_help_shows_how_a_program_is_run(capsys):
    start(["--help"])
    assert capsys.readouterr().out.startswith("usage: mpirun -n N topompi run")
