from collections.abc import Callable
from types import MemberDescriptorType

from mpi4py import MPI

class Calls:
    all: bool
    passes: bool
    made: int
    until: int
    @property
    def others(self) -> Calls | None: ...
    @others.setter
    def others(self, others: Calls) -> None: ...
    def add(self, method: int, root: int, op: MPI.Op | None, nbytes: int, run: Callable[..., object]) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...

def Method(
    function: Callable[..., object],
    native: Callable[..., object],
    slot: MemberDescriptorType,
    number: int,
    parameters: tuple[str, ...],
    defaults: tuple[object, ...],
    message: int,
    root: int,
    op: int,
) -> Callable[..., object]: ...
