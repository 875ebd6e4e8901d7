"""The path of a service's UNIX socket: no other user can replace it, and nothing else is touched."""

import os
import socket
import stat
from pathlib import Path

import pytest

from topompi.errors import ServiceError
from topompi.topology.client import Address
from topompi.topology.service.path import SocketPath

STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")


def at(path: Path) -> SocketPath:
    return SocketPath(Address(path=str(path)))


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_all_may_connect_and_none_before_it_listens(tmp_path, umask: int, monkeypatch) -> None:
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("a path may be a link by now"))
    path = tmp_path / "socket"
    before = os.umask(umask)
    try:
        bound = at(path).bind()
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    with bound:
        assert stat.S_IMODE(path.lstat().st_mode) == 0o666
        with pytest.raises(ConnectionRefusedError):
            Address(path=str(path)).connect()
        bound.listen()
        Address(path=str(path)).connect().close()


@pytest.mark.parametrize(("mode", "is_refused"), [(0o755, False), (0o1777, False), (0o777, True), (0o757, True)])
def test_a_folder_in_which_others_can_replace_it_is_refused(tmp_path, mode: int, is_refused: bool) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    folder.chmod(mode)
    for path in (folder / "socket", folder / "below" / "socket"):
        if is_refused:
            with pytest.raises(ServiceError, match=f"got {folder}, which everybody may write"):
                at(path).bind()
            assert not path.exists()
        else:
            at(path).bind().close()


@as_root
def test_a_folder_of_another_user_is_refused(tmp_path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chown(folder, STRANGER, -1)
    with pytest.raises(ServiceError, match=f"belongs to user {STRANGER}"):
        at(folder / "socket").bind()


def test_what_is_no_socket_of_ours_is_left_alone(tmp_path) -> None:
    victim, file, link = tmp_path / "victim", tmp_path / "file", tmp_path / "link"
    victim.write_text("precious")
    file.write_text("precious")
    link.symlink_to(victim)
    for path in (file, link):
        with pytest.raises(ServiceError, match="expecting a path that is free"):
            at(path).bind()
    assert link.is_symlink()
    assert (victim.read_text(), file.read_text()) == ("precious", "precious")
    assert stat.S_IMODE(victim.stat().st_mode) != 0o666


def test_a_socket_is_replaced_when_nobody_listens_at_it(tmp_path) -> None:
    path = tmp_path / "socket"
    first = at(path)
    with first.bind() as bound:
        bound.listen()
        with pytest.raises(ServiceError, match="no service listens at"):
            at(path).bind()
    second = at(path)
    with second.bind() as bound:
        bound.listen()
        first.remove()  # what is there is no longer its own
        Address(path=str(path)).connect().close()
    second.remove()
    second.remove()
    assert not path.exists()


@as_root
def test_a_socket_that_a_stranger_has_left_is_refused(tmp_path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(path))
    os.chown(path, STRANGER, -1)
    with pytest.raises(ServiceError, match=f"a file of user {STRANGER}"):
        at(path).bind()
    assert path.exists()
