"""A cache of the most recently used values, bounded in number and in total weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["LRU"]

T = TypeVar("T")


class LRU:
    """A cache of the most recently used values by key.

    :param most: maximum number of values.
    :param heaviest: maximum total weight of the values, in any unit; a value heavier than a quarter of it is not kept.
    """

    def __init__(self, most: int, heaviest: int = 1) -> None:
        self._values: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._most, self._heaviest, self._weight = most, heaviest, 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: object) -> Any:
        """The value of a key; None if it is not in the cache."""
        found = self._values.get(key)
        if found is None:
            return None
        with suppress(KeyError):  # another thread has dropped it
            self._values.move_to_end(key)
        return found[0]

    def put(self, key: object, value: object, weight: int = 0) -> None:
        """Add a value under a new key; while a bound is exceeded, drop the least recently used value.

        :param key: any hashable object.
        :param value: any object except None.
        :param weight: weight of the value, in the unit of ``heaviest``.
        """
        if 4 * weight > self._heaviest:
            return
        self._values[key] = value, weight
        self._weight += weight
        while len(self._values) > self._most or self._weight > self._heaviest:
            self._weight -= self._values.popitem(last=False)[1][1]

    def made(self, key: object, make: Callable[[], T]) -> T:
        """The value of a key; if it is not in the cache, ``make`` makes it first."""
        value: T | None = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def clear(self) -> None:
        """Drop all values."""
        self._values.clear()
        self._weight = 0
