from collections.abc import Mapping
from typing import Any

def packed(arguments: tuple[Any, ...], lasting: Mapping[int, Any]) -> bytes | None: ...
