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


def answer(question: str, server: str) -> int:
    """Ask a topology service, print its answer, and return the exit code: 1 if it reports bad health, else 0.

    :param question: two hosts, ``A:B``, to ask for the route between these, or one of ``KINDS``.
    :param server: address at which the service listens.
    :raises ServiceError: if the service does not answer the question.
    """
    if question not in KINDS and ":" not in question:
        raise ServiceError(f"expecting one of A:B, {', '.join(KINDS)}, got {question!r:.60}")
    address = Address.parse(server)
    if question not in KINDS:
        line = ask_line(address, f"query {question}")
        if line.startswith("error: "):
            raise ServiceError(f"{address}: {line.removeprefix('error: ')}")
        print(visible(line))
        return 0
    found = ask(address, {"request": question}, short=True)
    print(json.dumps(found, indent=1))
    return int(question == "health" and found.get("status") != "ok")


def ask_quickly(words: Sequence[str]) -> int | None:
    """Run ``topompi topology query`` without typer, which loads slowly, and return the exit code.

    The result is None if there is no question, or are options that only typer can parse; then nothing was done.

    :param words: words of the command line after ``topology query``.
    """
    question, server = None, LISTEN
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name == "--server" and (equals or rest):
            server = value if equals else rest.pop(0)
        elif word.startswith("-") or question is not None:
            return None
        else:
            question = word
    if question is None:
        return None
    try:
        return answer(question, server)
    except TopompiError as error:
        print(f"topompi: {error}", file=sys.stderr)  # our own errors have no control characters
        return 1
