"""Checks that no other user can replace the code that root (the superuser) runs or the files that root reads.

``osu_like_bench/guard.py`` is a link to this file: each of the two packages imports its copy before anything else. The
file imports only ``os``, ``stat`` and ``sys``, which Python loads before it puts the current directory on ``sys.path``;
any other module could come from a file that another user left in that directory.
"""

import os
import stat
import sys

__all__ = ["intrusion", "require_own_code"]


def intrusion(path: str, *, may_add: bool = False, any_owner: bool = False) -> str:
    """The first folder or file through which other users may replace a path's content, and which users; "" if none may.

    Root and this process's user are trusted. The sticky bit of a folder keeps others from replacing its entries, not
    from adding entries.

    :param path: the path of a file or folder, which need not exist.
    :param may_add: True to allow that others add files to the folder ``path``.
    :param any_owner: True to trust also the owners of all folders and files on the path.
    """
    for chain in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        parts = [part for part in _parts(chain) if os.path.lexists(part)]
        for part in parts:
            who = _others(os.lstat(part), may_add or part != parts[-1], any_owner)
            if who:
                return f"{part}, which {who}"
    return ""


def _parts(path: str) -> list[str]:
    """A path and all folders above it, the root folder first."""
    names = path.strip("/").split("/")
    return ["/", *("/" + "/".join(names[: count + 1]) for count in range(len(names)) if path != "/")]


def _others(found: os.stat_result, is_sticky_enough: bool, any_owner: bool) -> str:
    """A phrase that names the other users who may write a file; "" if none may.

    A group whose number is the owner's user number is trusted, because it is the owner's private group.

    :param found: the file's status, links not followed.
    :param is_sticky_enough: True if a sticky bit protects the file enough.
    :param any_owner: True to trust the owner, whoever it is.
    """
    if not any_owner and found.st_uid not in (0, os.geteuid()):
        return f"belongs to user {found.st_uid}"
    if stat.S_ISLNK(found.st_mode) or (is_sticky_enough and found.st_mode & stat.S_ISVTX):
        return ""
    if found.st_mode & stat.S_IWOTH:
        return "everybody may write"
    if found.st_mode & stat.S_IWGRP and found.st_gid not in (0, found.st_uid):
        return f"group {found.st_gid} may write"
    return ""


def require_own_code(program: str, *, any_owner: bool = False) -> None:
    """Exit with an error if the process is root's and may import modules that other users can replace.

    :param program: name of the package, with which the error message begins.
    :param any_owner: True to trust the owners of the files, and to check only the current directory, if it is on
        ``sys.path``.
    """
    if os.geteuid() != 0:
        return
    try:
        here = os.getcwd()
    except OSError:
        here = "/"  # a folder that is gone holds no modules
    for entry in [entry or here for entry in sys.path if isinstance(entry, str)]:
        if not os.path.isabs(entry) and not os.path.lexists(entry):
            continue  # the mark that an editable install leaves for its import hook
        is_here = os.path.realpath(entry) == here
        found = intrusion(entry, any_owner=any_owner) if is_here or not any_owner else ""
        if found:
            remedy = f"run {program}, or python -P -m {program}, or change to another folder" if is_here else ""
            remedy = remedy or "take it away from others (chmod, chown), or off sys.path (PYTHONPATH)"
            sys.exit(f"{program}: expecting root's modules where nobody else may put any, got {found}: {remedy}")
