"""The generation that a service answers from, and how the next one replaces it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import fields

import numpy as np

from ...errors import TopompiError
from ..computed import ComputedLinks
from ..fabric import Fabric
from ..routes import Routes
from .generation import Generation

__all__ = ["Store"]


class Store:
    """Holds one generation, which readers take as a whole: they never see parts of two.

    :param load: reads the source.
    :raises TopompiError: what ``load`` raises: there is no service without a first generation.
    """

    def __init__(self, load: Callable[[], Routes]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self.problem = ""
        self.current = Generation(1, load(), time.time())

    def reload(self, is_valid: Callable[[], bool] = lambda: True) -> bool:
        """Read the source again; where that fails the old generation stays, and ``problem`` says why.

        :param is_valid: asked after reading: whether nothing has changed meanwhile; else what was read is thrown away.
        :returns: whether it was read. Where it says what it said before, the generation stays.
        """
        with self._lock:
            try:
                routes = self._load()
            except (TopompiError, OSError, MemoryError) as error:
                self.problem = str(error) or type(error).__name__
                return False
            if not is_valid():
                return False
            if not _are_equal(routes, self.current.routes):
                self.current = Generation(self.current.number + 1, routes, time.time())
            self.problem = ""
            return True


def _are_equal(first: Routes, second: Routes) -> bool:
    """Whether two routes answer every question alike."""
    one, other = (
        {field.name: getattr(routes.fabric, field.name) for field in fields(Fabric)} for routes in (first, second)
    )
    return (
        first.engine == second.engine
        and _have_equal_tables(first, second)
        and all(_are_alike(value, other[name]) for name, value in one.items())
    )


def _have_equal_tables(first: Routes, second: Routes) -> bool:
    """Whether the next links are equal where the fabrics are: those that are computed follow from the fabric."""
    tables = first.table, second.table
    if all(isinstance(table, ComputedLinks) for table in tables):
        return True
    return first.num_entries == second.num_entries and np.array_equal(first.next_link, second.next_link)


def _are_alike(first: object, second: object) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return first == second
