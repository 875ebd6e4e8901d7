"""JSON from outside: errors with file and line, and no number that Python could not print again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import TopompiError

__all__ = ["parse_json"]

_DIGITS = 4000  # Python converts and prints up to 4,300


def parse_json(
    text: str | bytes,
    name: str,
    error: type[TopompiError],
    pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None,
) -> Any:
    """The value that a text holds.

    A whole number of more digits than Python converts (4,300) is cut to 4,000: whoever checks the field then refuses
    it, by its name.

    :param text: of the file.
    :param name: what messages begin with: the file.
    :param error: what to raise.
    :param pairs: makes an object of its fields; by default the last one of a name counts.
    :raises TopompiError: ``error``, with file and, where it is known, line.
    """
    try:
        content = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return _loads(content, parse_constant=_constant, object_pairs_hook=pairs)
    except json.JSONDecodeError as problem:
        raise error(f"{name}:{problem.lineno}: expecting JSON: {problem.msg}") from problem
    except UnicodeDecodeError as problem:
        line = text[: problem.start].count(b"\n") + 1 if isinstance(text, bytes) else 1
        raise error(f"{name}:{line}: expecting JSON in UTF-8, got other bytes") from problem
    except RecursionError as problem:
        raise error(f"{name}: expecting JSON with brackets nested within reason, got more") from problem
    except _ConstantError as problem:
        raise error(f"{name}: expecting JSON, got {problem}") from problem


def _loads(content: str, **hooks: Any) -> Any:
    try:
        return json.loads(content, **hooks)
    except (json.JSONDecodeError, _ConstantError, TopompiError):
        raise
    except ValueError:  # a number too long to convert: only then is a call for each number worth its time
        return json.loads(content, parse_int=_whole, **hooks)


def _whole(digits: str) -> int:
    return int(digits[:_DIGITS])


class _ConstantError(ValueError):
    """NaN or an infinity, which JSON does not have."""


def _constant(word: str) -> NoReturn:
    raise _ConstantError(word)
