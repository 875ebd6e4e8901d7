"""YAML values that know their places in the file, for error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import yaml

from ..errors import SourceError, TopompiError
from .files import InputFile

__all__ = ["Entry", "parse_yaml"]

Problem = Callable[[TopompiError], None]

_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"


@dataclass(frozen=True)
class Entry:
    """A YAML value and the name of its file, so that messages can name file and line."""

    node: yaml.Node
    file: str

    @property
    def place(self) -> str:
        """File and line of the value."""
        return f"{self.file}:{self.node.start_mark.line + 1}"

    def fields(self, allowed: Sequence[str] | None, problem: Problem) -> dict[str, Entry]:
        """Return the values of this mapping by key, without null values; SourceError if this value is no mapping.

        :param allowed: keys that the mapping may have; None to allow any key, and to take the first value of a repeated
            key.
        :param problem: function that is called with an error for each key that is not in ``allowed``, and for each
            repetition of a key in it.
        """
        shown = ", ".join(allowed or ["names and values"])
        if not isinstance(self.node, yaml.MappingNode):
            raise SourceError(f"{self.place}: expecting a mapping with {shown}, got {self._describe()}")
        found: dict[str, Entry] = {}
        for key, value in self.node.value:
            place = f"{self.file}:{key.start_mark.line + 1}"
            if allowed is None:
                if isinstance(key, yaml.ScalarNode) and value.tag != _NULL:
                    found.setdefault(key.value, Entry(value, self.file))
            elif key.value not in allowed:
                problem(SourceError(f"{place}: expecting one of {shown}, got {key.value!r}"))
            elif key.value in found:
                problem(SourceError(f"{place}: expecting {key.value} once, got it twice"))
            elif value.tag != _NULL:
                found[key.value] = Entry(value, self.file)
        return found

    def items(self) -> list[Entry]:
        """Return the values of this list; SourceError if this value is no list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise SourceError(f"{self.place}: expecting a list, got {self._describe()}")
        return [Entry(node, self.file) for node in self.node.value]

    def text(self) -> str:
        """Return the text of this scalar; SourceError if this value is a mapping or a list."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise SourceError(f"{self.place}: expecting a name or a host list, got {self._describe()}")
        return str(self.node.value)

    def is_true(self) -> bool:
        """Return whether the value is the boolean true."""
        return self.node.tag == _BOOL and self.text().lower() in ("true", "yes", "on")

    def _describe(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value)
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


class _Stream:
    """A file object for PyYAML: the lines of a text, read within its limits."""

    def __init__(self, text: InputFile) -> None:
        self._lines = (line if number == 1 else f"\n{line}" for number, line in text.lines())

    def read(self, size: int = -1) -> str:
        """Return the next part of the text; empty at its end."""
        return "".join(islice(self._lines, 256))


def parse_yaml(text: InputFile) -> Entry:
    """Parse the value in a file.

    :raises SourceError: if it is not YAML, with file and line.
    """
    try:
        node = yaml.compose(_Stream(text), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SourceError(f"{text.name}:{line}: expecting YAML, but {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{text.name}: expecting YAML, but {str(error).splitlines()[0]}") from error
    except (ValueError, IndexError, TypeError) as error:  # PyYAML's scanner raises these for some malformed text
        raise SourceError(f"{text.name}: expecting YAML, but {error}") from error
    if node is None:
        raise SourceError(f"{text.name}: expecting a list of topologies, got an empty file")
    return Entry(node, text.name)
