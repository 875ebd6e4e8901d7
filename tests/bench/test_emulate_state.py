"""Records of emulated networks: root trusts only records that no other user can have written."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from osu_like_bench.emulate import Emulated, LaunchOptions, emulated_routes, take_down
from osu_like_bench.emulate.agent import write_agent
from osu_like_bench.emulate.launch import Launch, command_line
from osu_like_bench.emulate.network import raise_network
from osu_like_bench.emulate.records import FILE, NetworkRecord, directory, states
from tests.emulation import private_state  # noqa: F401 - a fixture
from tests.support import ROOT
from topompi.errors import BenchmarkError

pytestmark = pytest.mark.usefixtures("private_state")
STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")


@pytest.fixture
def no_rights_needed(monkeypatch) -> None:
    monkeypatch.setattr("osu_like_bench.emulate.session.check_rights", lambda: None)


def written(**changes: object) -> NetworkRecord:
    """A network's state, in whose file some fields are others."""
    state = NetworkRecord.make("net1", "1x1", ("h0000",), owned=False)
    file = state.path / FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return state


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../victim"},
        {"name": "net2"},
        {"name": 7},
        {"token": "../../x"},
        {"token": "abcdeg"},
        {"spec": ["1x1"]},
        {"hosts": ["../../../victim"]},
        {"hosts": ["h", 3]},
        {"hosts": 3},
        {"owner": "1"},
        {"owner": -1},
        {"owner_start": "x"},
        {"more": 1},
    ],
)
def test_a_state_that_up_would_not_have_written_is_refused_and_down_removes_nothing(
    changes: dict[str, object], tmp_path, no_rights_needed
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "data").write_text("precious")
    state = written(**changes)
    name, value = next(iter(changes.items()))
    with pytest.raises(BenchmarkError, match="a state as" if name == "more" or value == 3 else f"field {name}:"):
        take_down()
    assert (victim / "data").read_text() == "precious"
    assert state.path.exists()
    written_again = json.loads((state.path / FILE).read_text())
    (state.path / FILE).write_text(json.dumps({**written_again, "name": "net1"}))
    state.forget()


def test_hosts_whose_names_are_no_part_of_a_path_are_not_emulated() -> None:
    for host in ("../h", "a/b", "", "-x", "a b", "h\n"):
        with pytest.raises(BenchmarkError, match="hosts named by"):
            NetworkRecord.make("net", "1x1", (host,), owned=False)
    assert not list(states())


@as_root
@pytest.mark.parametrize(
    ("name", "change"),
    [
        (".", lambda path: os.chown(path, STRANGER, -1)),
        (".", lambda path: path.chmod(0o777)),
        (".", lambda path: path.chmod(0o1777)),
        ("net1", lambda path: os.chown(path, STRANGER, -1)),
        ("net1", lambda path: path.chmod(0o777)),
        ("net1/enter", lambda path: os.chown(path, STRANGER, -1)),
        ("net1/enter", lambda path: path.chmod(0o666)),
        ("net1/state.json", lambda path: path.chmod(0o666)),
    ],
)
def test_what_others_may_have_written_is_neither_believed_nor_run(name: str, change, no_rights_needed) -> None:
    state = NetworkRecord.make("net1", "1x1", ("h0000",), owned=False)
    write_agent(state, ["10.78.0.1"])
    change(directory() / name)
    for use in (lambda: list(states()), take_down):
        with pytest.raises(BenchmarkError, match=r"belongs to user 12345|everybody may write"):
            use()
    assert state.path.exists()
    subprocess.run(["chown", "-R", "0", str(directory())], check=True)
    subprocess.run(["chmod", "-R", "go-w,-t", str(directory())], check=True)
    assert [one.name for one in states()] == ["net1"]


@as_root
def test_no_network_is_made_in_a_directory_that_a_stranger_has_put_there(tmp_path, monkeypatch) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.mkdir()
    os.chown(theirs, STRANGER, -1)
    link.symlink_to(tmp_path)
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    for place in (theirs, theirs / "below", link, link / "below"):
        monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(place))
        with pytest.raises(BenchmarkError, match="belongs to user 12345"):
            NetworkRecord.make("net1", "1x1", ("h0000",), owned=False)
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize("umask", [0, 0o077])
def test_folders_and_files_have_their_modes_whatever_the_umask(umask: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TOPOMPI_EMULATE_STATE", str(tmp_path / "above" / "state"))
    monkeypatch.setattr("osu_like_bench.emulate.network._command", lambda *_: None)
    routes = emulated_routes("1x2")
    before = os.umask(umask)
    try:
        state = NetworkRecord.make("net1", "1x2", routes.fabric.hosts, owned=False)
        raise_network(routes, state)
        command_line(Launch(["prog"], "openmpi", "/bin/mpirun", ["h0001", "h0000"]), state)
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "above").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"state.json", "fabric.json", "hosts", "enter", "agent"}
    for path in (tmp_path / "above", *(tmp_path / "above").rglob("*")):
        is_run = path.is_dir() or path.name in ("enter", "agent")
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if is_run else 0o644), path
    state.forget()


def test_a_file_of_a_network_is_not_written_through_a_link(tmp_path) -> None:
    state = NetworkRecord.make("net1", "1x1", ("h0000",), owned=False)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (state.path / "enter").symlink_to(victim)
    write_agent(state, ["10.78.0.1"])
    assert victim.read_text() == "precious"
    assert "nsenter" in (state.path / "enter").read_text()
    state.forget()


def test_an_owner_that_has_ended_is_dead_before_it_is_waited_for() -> None:
    code = "from osu_like_bench.emulate.records import NetworkRecord; NetworkRecord.make('net1', '1x1', ('h',), True)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as process:
        until = time.monotonic() + 60
        while _letter(process.pid) != "Z" and time.monotonic() < until:
            time.sleep(0.02)
        assert _letter(process.pid) == "Z"
        (state,) = states()
        assert state.owner == process.pid
        assert not state.in_use
    state.forget()


def _letter(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_another_process_with_the_owners_id_does_not_keep_a_network() -> None:
    state = NetworkRecord.make("net1", "1x1", ("h",), owned=True)
    assert state.in_use
    file = state.path / FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), "owner_start": "1"}))
    (found,) = states()
    assert found.owner == os.getpid()
    assert not found.in_use
    state.forget()


def test_no_job_starts_in_a_directory_where_others_may_put_modules(tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BenchmarkError, match=f"{tmp_path}, which everybody may write"):
        Emulated("1x2").run(["-m", "this"], LaunchOptions())
