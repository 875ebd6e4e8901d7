"""``topompi topology query``: a question to a topology service, asked before any other command is imported."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ...errors import ServiceError, TopompiError
from ...topology.client import Address, ask, ask_line
from ...visible import visible

__all__ = ["KINDS", "LISTEN", "answer", "ask_quickly"]

LISTEN = "127.0.0.1:7471"
KINDS = ("health", "counters", "generation")


def answer(pair: str | None, server: str, kinds: Sequence[str]) -> int:
    """Print what a service answers; the exit code: 1 where a service that is asked for its health is not well.

    :param pair: two hosts, ``A:B``; None where something else is asked.
    :param server: where the service listens.
    :param kinds: what else is asked for, of ``KINDS``.
    :raises ServiceError: unless one thing is asked, and where there is no answer to it.
    """
    if (pair is not None) + len(kinds) != 1:
        raise ServiceError(f"expecting one of A:B, {', '.join(f'--{kind}' for kind in KINDS)}")
    address = Address.parse(server)
    if pair is not None:
        line = ask_line(address, f"query {pair}")
        if line.startswith("error: "):
            raise ServiceError(f"{address}: {line.removeprefix('error: ')}")
        print(visible(line))
        return 0
    found = ask(address, {"request": kinds[0]}, short=True)
    print(json.dumps(found, indent=1))
    return int(kinds[0] == "health" and found.get("status") != "ok")


def ask_quickly(words: Sequence[str]) -> int | None:
    """Answer a plain question; None where the whole command line has to look: help, mistakes, unusual words.

    :param words: of the command line behind ``topology query``.
    """
    pair, server, kinds = None, LISTEN, []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name == "--server" and (equals or rest):
            server = value if equals else rest.pop(0)
        elif word.removeprefix("--") in KINDS and word not in KINDS:
            kinds.append(word.removeprefix("--"))
        elif word.startswith("-") or pair is not None:
            return None
        else:
            pair = word
    try:
        return answer(pair, server, kinds)
    except TopompiError as error:
        print(f"topompi: {error}", file=sys.stderr)  # an error of ours has no control characters
        return 1
