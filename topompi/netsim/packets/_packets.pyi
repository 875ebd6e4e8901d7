from typing import Any

from numpy.typing import NDArray

def simulate(arrays: dict[str, NDArray[Any]], numbers: dict[str, float]) -> dict[str, Any]: ...
