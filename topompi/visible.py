"""Text from files and users made safe to print: control characters escaped, no CSV cell that runs as a formula."""

from __future__ import annotations

import re

__all__ = ["csv_cell", "last_first", "unmarked", "visible"]

# C0 except tab and newline, DEL, C1, and Unicode's bidirectional controls, which reorder the text that a reader sees.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_FORMULA = tuple("=+-@\t\r\n")


def visible(text: str) -> str:
    r"""The text with control characters written as escapes (``\x1b``); newlines and tabs stay.

    DEL becomes ``\u007f``, which is valid in JSON, too: JSON writers escape all control characters except DEL.
    """
    return _CONTROL.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 and code != 0x7F else f"\\u{code:04x}"


def unmarked(text: str) -> str:
    """The text with control characters and all characters that XML 1.0 forbids replaced by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def last_first(said: bytes) -> str:
    """What a program wrote on standard error, in one line: its last line, then the others in their order, each once.

    The last line names the error of most programs; a line that is cut may lose the reason.

    :param said: the program's standard error.
    """
    lines = [" ".join(line.split()) for line in said.decode("utf-8", errors="replace").splitlines()]
    *others, last = list(dict.fromkeys(filter(None, reversed(lines))))[::-1] or ["nothing"]
    return f"{last} (before it: {'; '.join(others)})" if others else last


def csv_cell(value: object) -> object:
    """A value as a CSV cell: text that a spreadsheet would run as a formula gets an apostrophe in front; numbers stay.

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
