from typing import Any

from numpy.typing import NDArray

def run(
    arrays: tuple[NDArray[Any], ...], send_overhead: float, receive_overhead: float, eager: float, tolerance: float
) -> int: ...
