from typing import Any

import numpy as np
from numpy.typing import NDArray

class Program:
    def __init__(
        self,
        functions: tuple[int, ...],
        sizes: tuple[int, int, int],
        revoked: tuple[int, ...],
        error: Any,
        instructions: NDArray[np.int64],
        comm: int,
        tag: int,
        op: int,
        /,
    ) -> None: ...
    def run(self) -> None: ...
    def begin(self) -> bool: ...
    def advance(self) -> bool: ...
    def finish(self) -> bool: ...
    def relocate(self, begins: tuple[int, int], lengths: tuple[int, int], to: tuple[int, int]) -> None: ...
