"""Reading of users' files (opening, unpacking, limits), writing of files, settings, and parsing of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .extensions import when_used

if TYPE_CHECKING:
    from .files import InputFile, kinds_of, open_begun, open_inputs, read_input, read_text
    from .guard import guarded
    from .jsontext import parse_json
    from .kinds import foreign, kind_of
    from .limits import Limits, current_limits
    from .refusals import in_words

__all__ = [
    "InputFile",
    "Limits",
    "current_limits",
    "foreign",
    "guarded",
    "in_words",
    "kind_of",
    "kinds_of",
    "open_begun",
    "open_inputs",
    "parse_json",
    "read_input",
    "read_text",
]

# Imported at first use, because a client of the topology service needs no archives.
__getattr__ = when_used(
    __name__,
    {
        **dict.fromkeys(("InputFile", "kinds_of", "open_begun", "open_inputs", "read_input", "read_text"), "files"),
        "guarded": "guard",
        "parse_json": "jsontext",
        **dict.fromkeys(("foreign", "kind_of"), "kinds"),
        "in_words": "refusals",
        "Limits": "limits",
        "current_limits": "limits",
    },
)
