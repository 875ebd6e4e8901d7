"""Who may replace what root is about to run or believe.

``osu_like_bench/guard.py`` is a link to this file: each of the two packages imports its own before anything else, and
nothing but ``os`` and ``sys`` comes with it. Python has loaded these two before it puts the current directory on
``sys.path``; any other module could be one that somebody left there.
"""

import os
import stat
import sys

__all__ = ["intrusion", "require_own_code"]


def intrusion(path: str, *, may_add: bool = False, any_owner: bool = False) -> str:
    """The first folder or file through which others may replace what a path names, and who; empty if nobody may.

    Trusted are root and this process's user. A folder with the sticky bit keeps others from replacing what is in it,
    not from adding to it.

    :param path: the path of a file or folder, which need not exist.
    :param may_add: whether others may add files to the folder that the path names.
    :param any_owner: whether whoever the files belong to is trusted, too.
    """
    for chain in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        parts = [part for part in _parts(chain) if os.path.lexists(part)]
        for part in parts:
            who = _others(os.lstat(part), may_add or part != parts[-1], any_owner)
            if who:
                return f"{part}, which {who}"
    return ""


def _parts(path: str) -> list[str]:
    """A path and the folders above it, from the root on."""
    names = path.strip("/").split("/")
    return ["/", *("/" + "/".join(names[: count + 1]) for count in range(len(names)) if path != "/")]


def _others(found: os.stat_result, is_sticky_enough: bool, any_owner: bool) -> str:
    """Who else may write a file; empty if nobody may. A group that bears its owner's number is the owner's own."""
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
    """End a process of root's that would import modules which others may replace; nothing for any other user.

    :param program: name of its command and of its console script, with which the message begins.
    :param any_owner: see ``intrusion``; the current directory alone is looked at then, if it is on ``sys.path``.
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
