"""Whatever somebody hands in: files opened, unpacked and read within limits, and JSON parsed, in one place."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .files import InputFile, kinds_of, open_inputs, read_input, read_text
    from .guard import guarded
    from .jsontext import parse_json
    from .kinds import kind_of
    from .limits import Limits, current_limits

__all__ = [
    "InputFile",
    "Limits",
    "current_limits",
    "guarded",
    "kind_of",
    "kinds_of",
    "open_inputs",
    "parse_json",
    "read_input",
    "read_text",
]

# Imported when asked for: of a job's ranks only rank 0 reads files, but all import the limits.
_WHERE = {
    **dict.fromkeys(("InputFile", "kinds_of", "open_inputs", "read_input", "read_text"), ".files"),
    **dict.fromkeys(("guarded",), ".guard"),
    **dict.fromkeys(("parse_json",), ".jsontext"),
    **dict.fromkeys(("kind_of",), ".kinds"),
    **dict.fromkeys(("Limits", "current_limits"), ".limits"),
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
