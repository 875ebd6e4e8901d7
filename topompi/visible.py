"""Text of others made safe to show: control characters as escapes, cells of CSV that no spreadsheet runs."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["csv_cell", "unmarked", "visible"]

# C0 but tab and newline, DEL, C1, and the marks that reverse what a reader sees (Unicode's bidirectional controls).
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_FORMULA = tuple("=+-@\t\r\n")


def visible(text: str) -> str:
    r"""The text with control characters as escapes (``\x1b``); newlines and tabs stay.

    DEL becomes ``\u007f``, which JSON reads too: JSON's writers escape all other control characters themselves.
    """
    return _CONTROL.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 and code != 0x7F else f"\\u{code:04x}"


def unmarked(text: str) -> str:
    """The text with what XML 1.0 does not allow, and control characters, replaced by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def csv_cell(value: Any) -> Any:
    """A value as a cell of CSV: text that a spreadsheet takes for a formula gets an apostrophe, numbers stay.

    :param value: a number, None or text.
    """
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
