"""The one reader of the JSON and YAML of Slurm's commands (``--json``, ``--yaml``; data_parser 0.0.37 to 0.0.44)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...errors import TopompiError
from ..files import InputFile
from ..jsontext import parse_json
from .clusters import Clusters, cluster_heading
from .reports import yaml_values

__all__ = [
    "ACCOUNTS",
    "JOBS",
    "NODES",
    "AnswerKind",
    "Document",
    "documents",
    "entries",
    "fields_of",
    "is_answer",
    "number_of",
]

_YAML = re.compile(r"%YAML|---\s*$|(jobs|nodes|sinfo|partitions|meta|errors|warnings|last_update|last_backfill)\s*:")
# A line with a cluster's name, or the end of an object of JSON or YAML with another one below it: squeue -M prints one
# of them, by its version.
_CUT = re.compile(rb"^CLUSTER: [^\n]*\n|(?<=\})[ \t\r]*+\n\s*+(?=\{)|^\.\.\.[ \t\r]*\n", re.M)
_PRINTED_BY = {
    "sinfo": "sinfo",
    "nodes": "scontrol show nodes",
    "partitions": "scontrol show partitions",
    "reservations": "scontrol show reservations",
    "steps": "scontrol show steps",
}
_COMMANDS = ("squeue", "sacct", "sinfo", "scontrol", "sstat", "sprio", "sshare", "sacctmgr", "sdiag", "sreport")


@dataclass(frozen=True)
class AnswerKind:
    """One kind of answer.

    :param wanted: commands that print it, for errors.
    :param commands: names of these commands.
    :param lists: names of the object's field with the entries, which depends on the command and its version.
    :param mark: field that tells the entries from those of another command; empty if the list's name does.
    """

    wanted: str
    commands: tuple[str, ...]
    lists: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True)
class Document:
    """One object of an answer.

    :param content: the object; a text stands for every scalar of YAML.
    :param cluster: name of the cluster in the line above it; empty if there is none.
    """

    content: Any
    cluster: str = ""


JOBS = AnswerKind("squeue --json or scontrol show jobs --json", ("squeue", "scontrol"), ("jobs",), "job_state")
NODES = AnswerKind("sinfo --json or scontrol show nodes --json", ("sinfo", "scontrol"), ("nodes", "sinfo"))
ACCOUNTS = AnswerKind("sacct --json or Batsim's JSON", ("sacct",), ("jobs",), "time")


def is_answer(line: str) -> bool:
    """Return whether the first line of a text, below a heading with a cluster's name, begins JSON or Slurm's YAML."""
    return line.startswith("{") or bool(_YAML.match(line))


def documents(text: InputFile) -> list[Document]:
    """Parse the objects of an answer, of which there are several if the command asked several clusters.

    :param text: the answer.
    :raises TopompiError: of the class ``text.error``, with the line, if the answer is neither JSON nor YAML.
    """
    data, found, at, cluster = text.data(), list[Document](), 0, ""
    for match in [*_CUT.finditer(data), None]:
        part = data[at : match.start() if match else len(data)]
        if part.strip():
            # Empty lines in place of the parts before this one keep the numbers of lines in errors.
            found.append(Document(_parsed(text, b"\n" * data.count(b"\n", 0, at) + part), cluster))
        if match:
            at, cluster = match.end(), cluster_heading(match[0].decode(errors="replace")) or ""
    return found


def _parsed(text: InputFile, data: bytes) -> object:
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return parse_json(data, text.name, text.error)
    try:
        return yaml_values(replace(text, open=lambda: io.BytesIO(data)))
    except TopompiError as problem:
        raise text.error(str(problem)) from problem


def entries(
    text: InputFile, found: list[Document], kind: AnswerKind, clusters: Clusters
) -> Iterator[Mapping[str, object]]:
    """Yield the entries of an answer: jobs or nodes of the clusters that ``clusters`` takes.

    :param text: the answer, for its name and its class of errors.
    :param found: its objects.
    :param kind: kind of answer that is wanted.
    :param clusters: record and choice of the clusters.
    :raises TopompiError: the text's ``error``, with Slurm's own words if an object says that its command failed, or
        with the command's name if an object is of another kind.
    """
    for document in found:
        content = document.content
        listed = _entries(content, kind, text)
        name = document.cluster or _cluster_of(content)
        if not listed:
            clusters.takes(name)
        for entry in listed:
            own = entry.get("cluster") or entry.get("cluster_name")
            if clusters.takes(own if isinstance(own, str) else name):
                yield entry


def _entries(content: object, kind: AnswerKind, text: InputFile) -> list[Mapping[str, object]]:
    wanted = f"{text.name}: expecting {kind.wanted}"
    if not isinstance(content, Mapping):
        raise text.error(f"{wanted}, got no object")
    if words := _words(content.get("errors")):
        raise text.error(f"{wanted}, got Slurm's error: {words}")
    key = next((word for word in kind.lists if word in content), None)
    listed = content[key] if key is not None else None
    if not listed and (words := _words(content.get("warnings"))):
        raise text.error(f"{wanted}, got nothing and Slurm's warning: {words}")
    first = listed[0] if isinstance(listed, list) and listed else None
    name = _command_of(content)
    if first is None or kind.mark not in {"", *(first if isinstance(first, Mapping) else ())}:
        if name and name.split()[0] not in kind.commands:
            raise text.error(f"{wanted}, got the output of {name}")
        if key is None:
            raise text.error(f"{wanted}, got {name or _shown(content)}")
    if not isinstance(listed or [], list) or not all(isinstance(entry, Mapping) for entry in listed or []):
        raise text.error(f"{wanted}, got no list of objects in its field {key}")
    return listed or []


def _shown(content: Mapping[str, object]) -> str:
    fields = ", ".join(map(str, list(content)[:5]))
    return f"an object with the fields {fields}" if fields else "an empty object"


def _command_of(content: Mapping[str, object]) -> str:
    """Return the command that printed an object, by its ``meta``, its list, or its first job; empty if unknown."""
    meta = content.get("meta")
    words = meta.get("command") if isinstance(meta, Mapping) else None
    name = str(words[0]).rpartition("/")[2] if isinstance(words, list) and words else ""
    named = next((command for word, command in _PRINTED_BY.items() if word in content), "")
    if name in _COMMANDS and not named.startswith(name):
        return name
    jobs = content.get("jobs")
    first = jobs[0] if isinstance(jobs, list) and jobs else None
    if named or not isinstance(first, Mapping):
        return named
    return "sacct" if "time" in first and "state" in first else "squeue" if "job_state" in first else ""


def _cluster_of(content: Mapping[str, object]) -> str:
    meta = content.get("meta")
    slurm = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, Mapping) else None
    name = slurm.get("cluster") if isinstance(slurm, Mapping) else None
    return name if isinstance(name, str) else ""


def _words(said: object) -> str:
    """Return Slurm's own words for the errors or warnings of an object, each once; empty if there are none."""
    listed = said if isinstance(said, list) else [said] if said else []
    return "; ".join(dict.fromkeys(_sentence(one) for one in listed))


def _sentence(said: object) -> str:
    if not isinstance(said, Mapping):
        return str(said)
    words = [str(said[word]) for word in ("description", "error", "source") if said.get(word)]
    number = said.get("error_number", said.get("errno"))
    words += [f"error {number}"] if number else []
    more = [word for word in dict.fromkeys(words[1:]) if word not in words[0]]
    return f"{words[0]} ({', '.join(more)})" if more else "".join(words[:1]) or "an error without words"


@contextmanager
def fields_of(place: str, kind: AnswerKind, error: type[TopompiError]) -> Iterator[None]:
    """Convert what Python raises for a missing or malformed field of an entry to an error of ours.

    :param place: file and entry.
    :param kind: kind of answer to which the entry belongs.
    :param error: class of the error.
    """
    try:
        yield
    except TopompiError:
        raise
    except KeyError as problem:
        raise error(f"{place}: expecting {kind.wanted}, got no field {problem.args[0]}") from problem
    except (TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise error(f"{place}: expecting {kind.wanted}, got a field of another type") from problem


def number_of(value: object) -> str:
    """Return a number as text, also that of ``{"set": true, "infinite": false, "number": 4}``; empty if it is unset.

    :param value: content of a field.
    :raises TypeError: if it is a list or a truth value.
    """
    if isinstance(value, Mapping):
        is_set = _is_true(value.get("set")) and not _is_true(value.get("infinite"))
        value = value["number"] if is_set else None
    if isinstance(value, list | bool):
        raise TypeError
    return "" if value is None else str(value)


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
