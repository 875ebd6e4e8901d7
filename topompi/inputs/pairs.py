"""Texts ``KEY=VALUE`` of options, each key once."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import TopompiError

__all__ = ["read_pairs"]


def read_pairs(
    parts: Iterable[str], where: str, form: str, error: type[TopompiError], *, bare: bool = False
) -> dict[str, str]:
    """Return the values of texts ``KEY=VALUE`` by key.

    :param parts: the texts.
    :param where: option or input, for the error message.
    :param form: expected form of a text, for the error message.
    :param error: class of the error that is raised if a text has another form, or a key is there twice.
    :param bare: whether a key may have no value; its value is then empty.
    """
    found: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not key or not (equals or bare):
            raise error(f"{where}: expecting {form}, got {part!r:.60}")
        if key in found:
            raise error(f"{where}: expecting {key:.60} once, got {found[key]!r:.40} and {value!r:.40}")
        found[key] = value
    return found
