"""``topompi topology query``: a question to a topology service, sent without importing other commands, to be fast."""

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
    """Ask a topology service, print its answer, and return the exit code: 1 if it reports bad health, else 0.

    :param pair: two hosts, ``A:B``, if the question is the route between these; else None.
    :param server: address at which the service listens.
    :param kinds: names of other questions, from ``KINDS``; empty if ``pair`` is given.
    :raises ServiceError: if there is not exactly one question, or the service does not answer it.
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
    """Run ``topompi topology query`` without typer, which loads slowly, and return the exit code.

    The result is None if there are options that only typer can parse; then nothing was done.

    :param words: words of the command line after ``topology query``.
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
        print(f"topompi: {error}", file=sys.stderr)  # our own errors have no control characters
        return 1
