"""Policies of a user's own, named by the function that makes them, ``module:function``."""

from __future__ import annotations

from typing import TypeVar

from ..errors import TopompiError
from ..extensions import result_of

__all__ = ["made_by"]

Made = TypeVar("Made")


def made_by(name: str, kind: type[Made], error: type[TopompiError]) -> Made:
    """Call the named function, or class, without arguments and return the object that it makes.

    :param name: ``module:function``; the current directory is searched first.
    :param kind: class of the object.
    :param error: class of the error that is raised if the function is missing, fails, or makes an object of another
        class.
    """
    made = result_of(name, error)
    if not isinstance(made, kind):
        raise error(f"{name}: expecting a function that makes one {kind.__name__}, got {type(made).__name__}")
    return made
