from array import array
from collections.abc import Callable, Mapping
from typing import Any

from .counting import Counters

def Counted(
    native: Callable[..., Any],
    count: Callable[..., None],
    owner: Counters,
    sizes: Mapping[int, int],
    parameters: tuple[str, ...],
    message: int,
    peer: int,
    name: str | None = None,
    messages: array[int] | None = None,
    volume: array[int] | None = None,
) -> Callable[..., Any]: ...
