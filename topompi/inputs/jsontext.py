"""Parsing of JSON from outside, with errors that name file and line, and numbers that can always be printed again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import TopompiError

__all__ = ["parse_json"]

_DIGITS = 300  # of a whole number that can be a float, which has up to 308
_TOO_LONG = re.compile(rf"(?<![0-9])[0-9]{{{_DIGITS + 1}}}")


def parse_json(
    text: str | bytes,
    name: str,
    error: type[TopompiError],
    pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None,
    *,
    line: int = 1,
) -> Any:
    """Parse a JSON text.

    A whole number of more than 300 digits becomes infinity, as 1e400 does; the reader that checks the field's range
    later refuses it, and names the field.

    :param text: the JSON text.
    :param name: beginning of error messages, usually the file's name.
    :param error: class of the error that is raised.
    :param pairs: function that makes an object from its (name, value) pairs; by default the last value of a name
        counts.
    :param line: number of the text's first line in the file.
    :raises TopompiError: ``error``, if the text is not JSON; with file and, if known, line.
    """
    start = name if line == 1 else f"{name}:{line}"  # the line of JSON lines; unknown in a text of several lines
    try:
        content = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return _loads(content, parse_constant=_constant, object_pairs_hook=pairs)
    except json.JSONDecodeError as problem:
        raise error(f"{name}:{line + problem.lineno - 1}: expecting JSON: {problem.msg}") from problem
    except UnicodeDecodeError as problem:
        before = text[: problem.start].count(b"\n") if isinstance(text, bytes) else 0
        raise error(f"{name}:{line + before}: expecting JSON in UTF-8, got other bytes") from problem
    except RecursionError as problem:
        raise error(f"{start}: expecting JSON with brackets nested within reason, got more") from problem
    except _ConstantError as problem:
        raise error(f"{start}: expecting JSON, got {problem}") from problem


def _loads(content: str, **hooks: Any) -> Any:
    if _TOO_LONG.search(content):
        hooks["parse_int"] = _whole  # passed only if it is needed, because calling it per number is slow
    return json.loads(content, **hooks)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits[:_DIGITS] + "e400")


class _ConstantError(ValueError):
    """An error: the text contains NaN or an infinity, which JSON does not have."""


def _constant(word: str) -> NoReturn:
    raise _ConstantError(word)
