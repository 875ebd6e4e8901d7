"""The program's command line as a profile contains it, without values that look like secrets."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from ...inputs.settings import word_of

__all__ = ["kept_command"]

HIDDEN = "***"
_SECRETS = "password passwd passphrase passcode pass pwd token secret key apikey credential auth authorization bearer"
_WORDS = {*_SECRETS.split(), *(f"{word}s" for word in _SECRETS.split())}
_JOINED = ("password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "credential")
_ASSIGNED = re.compile(r"(?<![\w.-])([\w.-]++)\s*+[=:]\s*+(?=[^\s/])")  # a URL is not an assignment
_LOGIN = re.compile(r"(://[^/\s:@]*:)[^\s@]*@")
_NAMED_NEXT = ("-env", "--env", "-genv", "-x")  # launchers' options followed by a variable, then by its value


def kept_command(words: Sequence[str]) -> str:
    """A command line as it is stored in a profile: quoted, with *** in place of values that look like secrets.

    A secret is the X in ``--password=X``, ``--password X``, ``PASSWORD=X`` and ``scheme://user:X@``, and also if
    another word for secrets stands for ``password``. If the environment variable ``TOPOMPI_PROFILE_COMMAND`` is
    ``whole``, no value is replaced.

    :param words: the words of the command line.
    """
    if word_of("TOPOMPI_PROFILE_COMMAND", os.environ) == "whole":
        return shlex.join(words)
    follows = [False, *(_announces(before, word) for before, word in pairwise(["", *words]))]
    kept = [
        HIDDEN if hidden and word[:1] != "-" else _masked(word) for hidden, word in zip(follows, words, strict=False)
    ]
    return shlex.join(kept).replace(f"'{HIDDEN}'", HIDDEN)


def _announces(before: str, word: str) -> bool:
    """Whether ``word`` is an option or variable whose value, the next word of the command line, is a secret.

    :param before: the word before ``word``.
    :param word: a word of the command line.
    """
    option = word.startswith("-") or before in _NAMED_NEXT
    return option and "=" not in word and _is_secret(word.lstrip("-"))


def _masked(word: str) -> str:
    for match in _ASSIGNED.finditer(word):
        if _is_secret(match[1]):
            return word[: match.end()] + HIDDEN  # all of the rest, because a secret may contain any character
    return _LOGIN.sub(rf"\1{HIDDEN}@", word)


def _is_secret(name: str) -> bool:
    parts = re.split(r"[-_.]|(?<=[a-z])(?=[A-Z])", name)
    joined = "".join(parts).lower()
    return any(part.lower() in _WORDS for part in parts) or any(word in joined for word in _JOINED)
