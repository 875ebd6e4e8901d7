"""The store of a service's current generation, that is, of the version of the routes that it answers from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import TopompiError
from ..routes import Routes
from .generation import Generation

__all__ = ["RouteStore"]


class RouteStore:
    """A store of one generation (version of the routes) at a time, which reading the source again replaces as a whole.

    :param load: function that reads the source.
    :raises TopompiError: if ``load`` raises it at the first reading, because a service needs routes to start.
    """

    def __init__(self, load: Callable[[], Routes]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self.problem = ""
        self.current = self._read(1)

    def reload(self, is_valid: Callable[[], bool] = lambda: True) -> bool:
        """Read the source again; if this fails, the present routes stay, and ``problem`` contains the reason.

        :param is_valid: callback that is called after reading and returns whether the source has stayed unchanged
            meanwhile; if not, the new routes are discarded.
        :returns: whether reading succeeded. If the new routes equal the present ones, these stay, with the number of
            their generation (version).
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
