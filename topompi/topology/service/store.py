"""The store of a service's current generation, and its replacement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import TopompiError
from ..routes import Routes
from .generation import Generation

__all__ = ["Store"]


class Store:
    """The store of one generation; a reader gets it as a whole, never parts of two.

    :param load: function that reads the source.
    :raises TopompiError: any error of ``load``, because there is no service without a first generation.
    """

    def __init__(self, load: Callable[[], Routes]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self.problem = ""
        self.current = self._read(1)

    def reload(self, is_valid: Callable[[], bool] = lambda: True) -> bool:
        """Read the source again; on failure the old generation stays, and ``problem`` contains the reason.

        :param is_valid: callback after reading: whether the source is still unchanged; if not, the result is discarded.
        :returns: whether reading succeeded. If the routes are equal to the current ones, the current generation stays.
        """
        with self._lock:
            try:
                read = self._read(self.current.number + 1)
            except (TopompiError, OSError, MemoryError) as error:
                self.problem = str(error) or type(error).__name__
                return False
            if not is_valid():
                return False
            if read.digest != self.current.digest:
                self.current = read
            self.problem = ""
            return True

    def _read(self, number: int) -> Generation:
        read = Generation(number, self._load(), time.time())
        read.prepare()
        return read
