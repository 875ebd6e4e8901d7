from collections.abc import Callable
from typing import Any

from mpi4py import MPI

class Calls:
    all: bool
    def add(self, method: int, root: int, op: MPI.Op | None, nbytes: int) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...

def Method(
    function: Callable[..., None],
    native: Callable[..., None],
    slot: Any,
    number: int,
    parameters: tuple[str, ...],
    message: int,
    root: int,
    op: int,
    usual_op: MPI.Op,
) -> Callable[..., None]: ...
