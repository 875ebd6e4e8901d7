"""Secrets in profiles: the arguments of a command line that a profile keeps, and its readers."""

import stat

import pytest

from topompi.mpi.profile import Profile, write_profile
from topompi.mpi.profile.command import kept_command
from topompi.mpi.profile.recording import RankRows


@pytest.mark.parametrize(
    "words",
    [
        ["--password=SECRET"],
        ["--password=a,SECRET=c"],
        ["--password", "SECRET"],
        ["-token", "SECRET"],
        ["--api-key=SECRET"],
        ["--apiKey", "SECRET"],
        ["-x", "DB_PASSWD=SECRET"],
        ["-genv", "MY_TOKEN", "SECRET"],
        ["--export=ALL,PGPASSWORD=SECRET"],
        ["AWS_SECRET_ACCESS_KEY=SECRET"],
        ["--url=https://user:SECRET@host/x"],
        ["postgres://user:SE/SECRET@host"],
        ["--header", "Authorization: Bearer SECRET"],
        ["sh", "-c", "export CREDENTIALS=SECRET; ./app"],
        ["--key", "SECRET", "--steps", "10"],
    ],
    ids=" ".join,
)
def test_arguments_that_look_like_secrets_are_left_out(words, monkeypatch):
    kept = kept_command(["./app", *words, "end"])
    assert "SECRET" not in kept.replace("AWS_SECRET_ACCESS_KEY", "")
    assert "***" in kept
    assert (kept.startswith("./app "), kept.endswith(" end")) == (True, True)
    monkeypatch.setenv("TOPOMPI_PROFILE_COMMAND", "whole")
    assert "SECRET" in kept_command(words)


@pytest.mark.parametrize(
    "words",
    [
        ["mpirun", "-n", "4", "./app", "--steps=10", "--keyframes", "3"],
        ["--monkey=1", "--compass", "n", "http://host:80/x", "C:/x", "a=b"],
        ["--output", "tokens.txt", "h[0-3]:2"],
    ],
    ids=" ".join,
)
def test_other_arguments_are_kept(words):
    assert "***" not in kept_command(words)


def test_a_value_of_the_variable_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("TOPOMPI_PROFILE_COMMAND", "all")
    with pytest.raises(ValueError, match="TOPOMPI_PROFILE_COMMAND: expecting one of masked, whole"):
        kept_command(["x"])


def test_a_profile_is_for_its_owner_even_where_an_older_one_was_for_all(tmp_path):
    path = tmp_path / "f.topoprof"
    path.touch(0o644)
    write_profile(Profile(1, "by hand", of_rank=[RankRows.of_rows(0, [])]), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
