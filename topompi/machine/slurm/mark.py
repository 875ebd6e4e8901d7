"""The bridge's note on a job, in the field AdminComment, so that Slurm keeps all that the bridge must remember."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

__all__ = ["Mark"]

_NAME = "topompi"
_FIND = re.compile(rf"(?:^|(?<=\s)){_NAME}:(\S*)\s*")


@dataclass(frozen=True)
class Mark:
    """A note on one job.

    :param moved: time at which it was given nodes, in seconds since 1970; 0 if it has none.
    :param tries: number of times that it was given nodes and did not start.
    :param until: time before which it is not given nodes again, in seconds since 1970.
    :param left: reason for which it was left to Slurm, in one word; empty if it was not.
    :param promise: host list of the nodes that it was promised.
    :param throttle: maximum number of tasks of its array that may run at once; 0 if there is none.
    :param others: text of other programs in the same field, which is kept.
    """

    moved: int = 0
    tries: int = 0
    until: int = 0
    left: str = ""
    promise: str = ""
    throttle: int = 0
    others: str = ""

    @classmethod
    def parse(cls, comment: str) -> Mark:
        """Read a note from the field's text; a malformed part counts as absent, because others may write there."""
        others = _FIND.sub("", comment).strip()
        values: dict[str, int | str] = {"others": "" if others == "(null)" else others}
        numbers = {one.name for one in fields(cls) if one.type == "int"}
        match = _FIND.search(comment)
        for part in match[1].split(";") if match else ():
            name, _, value = part.partition("=")
            if name in numbers and value.isdecimal() and len(value) < 16:
                values[name] = int(value)
            elif name in ("left", "promise"):
                values[name] = value
        return cls(**values)  # type: ignore[arg-type]  # each value has its field's type

    def text(self) -> str:
        """Return the field's text; empty if there is nothing to note."""
        given = [(one.name, getattr(self, one.name)) for one in fields(self) if one.name != "others"]
        own = ";".join(f"{name}={value}" for name, value in given if value)
        return " ".join(filter(None, [self.others, f"{_NAME}:{own}" if own else ""]))
