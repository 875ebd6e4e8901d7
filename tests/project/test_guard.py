"""The guard of root: it runs no module that another user could have put on Python's search path."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.support import ROOT
from topompi.guard import intrusion
from topompi.inputs.extensions import imported

STRANGER = 12345
# Not importlib: python -m itself imports it, from the current directory, before any line of ours runs.
PLANTED = ("__future__", "typing", "typer", "numpy", "rich", "scipy", "mpi4py", "yaml", "json", "pathlib")
EMULATE, TOPOMPI = ("osu_like_bench", "emulate", "status"), ("topompi", "topology", "show", "xgft:2,2;1,1")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the guard protects")


@pytest.fixture
def shared(tmp_path) -> Path:
    """A folder where everybody may put files, and somebody has put modules that say that they ran."""
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"print('{name} of a stranger ran')\nraise SystemExit(3)\n")
    folder.chmod(0o1777)
    return folder


def run(
    words: tuple[str, ...], folder: Path, *options: str, path: str = "", user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """``python -m`` with some words in a folder; this checkout is found without the folder's help."""
    found = os.pathsep.join(filter(None, (str(ROOT), path)))
    return subprocess.run(
        [sys.executable, *options, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        user=user,
    )


@as_root
@pytest.mark.parametrize("words", [EMULATE, TOPOMPI, ("topompi", "script.py")])
def test_root_runs_no_module_of_a_folder_that_everybody_may_write(shared: Path, words: tuple[str, ...]) -> None:
    (shared / "script.py").write_text("print('of a stranger ran')")
    done = run(words, shared)
    assert "stranger" not in done.stdout + done.stderr
    assert done.returncode == 1
    assert f"got {shared}, which everybody may write: run {words[0]}, or python -P -m {words[0]}," in done.stderr
    assert done.stderr.count("\n") == 1


@as_root
@pytest.mark.parametrize("words", [EMULATE, TOPOMPI])
def test_root_runs_the_command_there_where_the_folder_is_not_searched(
    shared: Path, words: tuple[str, ...], monkeypatch
) -> None:
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(shared.parent / "none"))
    done = run(words, shared, "-P")
    assert done.returncode == 0, done.stderr


@as_root
def test_emulation_looks_at_every_folder_that_modules_come_from(tmp_path) -> None:
    shared, theirs = tmp_path / "shared", tmp_path / "theirs"
    missing = shared / "missing"
    theirs.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    os.chown(theirs, STRANGER, -1)
    for path, said in (
        (shared, f"{shared}, which everybody may write: take it away"),
        (missing, f"{shared}, which everybody may write"),
        (theirs, f"{theirs}, which belongs to user {STRANGER}"),
        (theirs / "below", f"{theirs}, which belongs to user {STRANGER}"),
    ):
        done = run(EMULATE, ROOT, path=str(path))
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert run(EMULATE, theirs).returncode == 1


@as_root
def test_a_program_of_its_folders_owner_runs_under_topompi(tmp_path) -> None:
    """As where a user's folder is mounted into a container, in which everybody is root."""
    os.chown(tmp_path, STRANGER, STRANGER)
    tmp_path.chmod(0o775)
    assert run(TOPOMPI, tmp_path).returncode == 0
    os.chown(tmp_path, STRANGER, STRANGER + 1)
    assert f"which group {STRANGER + 1} may write" in run(TOPOMPI, tmp_path).stderr


@as_root
def test_whoever_is_not_root_is_not_asked(shared: Path) -> None:
    from topompi import guard

    code = f"import os, sys; os.setuid({STRANGER}); sys.path.insert(0, ''); import guard; guard.require_own_code('x')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=shared,
        env={"PYTHONPATH": os.path.dirname(guard.__file__)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@as_root
def test_a_function_by_name_is_not_looked_for_where_everybody_may_write(shared: Path, monkeypatch) -> None:
    (shared / "mine_by_name.py").write_text("def found(): pass\n")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(ROOT))])
    monkeypatch.chdir(shared)
    with pytest.raises(ValueError, match=f"as root, a directory that nobody else may write, got {shared}"):
        imported("mine_by_name:found")
    shared.chmod(0o755)
    assert imported("mine_by_name:found")() is None


def test_the_guards_come_before_every_module_that_a_folder_could_shadow() -> None:
    """Without ``site`` nothing but Python's core is loaded before: what the guards bring is built in or frozen."""
    code = (
        f"import sys; before = set(sys.modules); sys.path.insert(0, {str(ROOT)!r});"
        "import {0}.guard; import _imp;"
        "found = {{name.partition('.')[0] for name in set(sys.modules) - before}} - {{'{0}'}};"
        "print(*(name for name in found if not _imp.is_frozen(name) and name not in sys.builtin_module_names))"
    )
    for package in ("topompi", "osu_like_bench"):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code.format(package)], capture_output=True, text=True, timeout=60
        )
        assert (done.stdout, done.stderr) == ("\n", "")
        lines = (ROOT / package / "__main__.py").read_text().splitlines()
        imports = [line for line in lines if line.startswith(("import ", "from "))]
        assert imports[:2] == ["import sys", "from .guard import require_own_code"]


def test_both_packages_have_one_guard() -> None:
    ours, other = (import_module(f"{name}.guard").__file__ for name in ("topompi", "osu_like_bench"))
    assert ours is not None
    assert other is not None
    assert ours != other
    assert os.path.realpath(ours) == os.path.realpath(other)


def test_both_packages_have_console_scripts() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts) == {"topompi", "osu_like_bench"}
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.parametrize(
    ("mode", "words", "added"),
    [
        (0o755, "", ""),
        (0o700, "", ""),
        (0o1755, "", ""),
        (0o777, "everybody may write", "everybody may write"),
        (0o757, "everybody may write", "everybody may write"),
        (0o1777, "everybody may write", ""),
    ],
)
def test_who_may_write_a_folder_follows_from_its_mode(tmp_path, mode: int, words: str, added: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    below = folder / "below"
    below.mkdir(mode=0o755)
    folder.chmod(mode)
    assert intrusion(str(folder)).endswith(words)
    assert bool(intrusion(str(folder))) == bool(words)
    assert bool(intrusion(str(folder / "missing"))) == bool(words)
    assert bool(intrusion(str(folder), may_add=True)) == bool(added)
    assert bool(intrusion(str(below))) == bool(added)  # the sticky bit keeps others from moving it away


@as_root
def test_a_link_counts_as_its_owners_and_leads_to_what_counts(tmp_path) -> None:
    safe, link = tmp_path / "safe", tmp_path / "link"
    safe.mkdir()
    link.symlink_to(safe)
    assert intrusion(str(link)) == ""
    safe.chmod(0o777)
    assert intrusion(str(link)) == f"{safe}, which everybody may write"
    safe.chmod(0o755)
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    assert intrusion(str(link)) == f"{link}, which belongs to user {STRANGER}"
    assert intrusion(str(link / "below")) == f"{link}, which belongs to user {STRANGER}"
    assert intrusion(str(link), any_owner=True) == ""
    os.chown(safe, -1, STRANGER)
    safe.chmod(0o775)
    assert intrusion(str(safe)) == f"{safe}, which group {STRANGER} may write"
