"""The generation that a service answers from, and how the next one replaces it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import TopompiError
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
        self.current = self._read(1)

    def reload(self, is_valid: Callable[[], bool] = lambda: True) -> bool:
        """Read the source again; where that fails the old generation stays, and ``problem`` says why.

        :param is_valid: asked after reading: whether nothing has changed meanwhile; else what was read is thrown away.
        :returns: whether it was read. Where it says what it said before, the generation stays.
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
