"""Files that are written: as a whole, never through a link, with the wanted mode, all by one helper."""

import os
import stat
import threading

import pytest

from tests.support import command_line
from topompi.errors import OutputError
from topompi.inputs.writing import check_output, open_output, write_text
from topompi.mpi.profile import Profile, ProfileError, read_profile, write_profile
from topompi.mpi.profile.file import part_of
from topompi.mpi.profile.recording import RankRows

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to another user")

FABRIC = "xgft:2,2,2;1,1,1"


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "f"
    victim.write_text("kept")
    link.symlink_to(victim)
    write_text(link, "new")
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("kept", "new", False)


def test_links_planted_under_names_that_a_profile_had_before_are_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "f.topoprof"
    victim.write_text("kept")
    path.with_name(f"f.topoprof.{os.getpid()}.new").symlink_to(victim)
    write_profile(Profile(1, "by hand", of_rank=[RankRows.of_rows(0, [])]), path)
    assert victim.read_text() == "kept"
    assert read_profile(path).size == 1


@pytest.mark.parametrize("command", ["export", "draw", "schedule"])
def test_commands_replace_links(tmp_path, command):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    name = {"export": "f.json", "draw": "f.svg", "schedule": "s.svg"}[command]
    (tmp_path / name).symlink_to(victim)
    words = {"schedule": ["schedule", "gather", "--topology", FABRIC, "--algorithm", "linear", "--draw"]}
    done = command_line(*words.get(command, ["topology", command, FABRIC, "-o"]), name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "kept"
    assert (tmp_path / name).stat().st_size > 100


def test_nothing_changes_where_writing_fails(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(TypeError), open_output(path) as stream:
        stream.writelines(["half", 1])
    assert [one.name for one in tmp_path.iterdir()] == ["f"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(("umask", "private", "mode"), [(0o022, False, 0o644), (0, False, 0o666), (0, True, 0o600)])
def test_the_umask_says_who_may_read(tmp_path, umask, private, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "f", "x", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


def test_a_file_keeps_the_mode_that_it_had(tmp_path):
    (tmp_path / "f").touch(0o640)
    os.chmod(tmp_path / "f", 0o640)
    write_text(tmp_path / "f", "x")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_fifo_of_ones_own_and_devices_are_written_to(tmp_path):
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    write_text(fifo, "x")
    reader.join(5)
    write_text("/dev/null", "x")
    assert (read, stat.S_ISCHR(os.stat("/dev/null").st_mode)) == (["x"], True)


def test_a_link_to_a_device_is_a_link_but_in_the_folder_of_devices(tmp_path, capfd):
    (tmp_path / "f").symlink_to("/dev/stdout")
    write_text(tmp_path / "f", "x")
    assert not (tmp_path / "f").is_symlink()
    write_text("/dev/stdout", "said")
    assert capfd.readouterr().out == "said"
    assert os.path.islink("/dev/stdout")


@needs_root
def test_a_fifo_of_another_user_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    os.chown(tmp_path / "fifo", 1234, 1234)
    with pytest.raises(OutputError, match="got a FIFO of another user"), open_output(tmp_path / "fifo"):
        pass


def test_a_directory_is_no_file_to_write(tmp_path):
    assert not check_output(tmp_path)
    assert check_output(tmp_path / "f")
    with pytest.raises(OutputError, match="expecting the name of a file to write, got a directory"):
        write_text(tmp_path, "x")


def _part(path, rank=0, name="planted"):
    write_profile(Profile(1, name, of_rank=[RankRows.of_rows(rank, [])]), part_of(path, rank))
    return part_of(path, rank)


def test_parts_that_are_links_are_refused(tmp_path):
    path = tmp_path / "f.topoprof"
    part = _part(path)
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ProfileError, match=r"f\.topoprof\.0\.part: expecting a regular file, got a link"):
        read_profile(path)


@needs_root
def test_parts_of_another_user_are_refused_unless_the_file_is_his_too(tmp_path):
    path = tmp_path / "f.topoprof"
    write_profile(Profile(1, "sound", of_rank=[RankRows.of_rows(0, [])]), path)
    os.chown(_part(path), 1234, 1234)
    with pytest.raises(ProfileError, match="expecting a file of the user 0, got one of the user 1234"):
        read_profile(path)
    os.chown(path, 1234, 1234)
    assert read_profile(path).method == "planted"
