from collections.abc import Callable
from typing import Any

def run(
    policy: int,
    depth: int,
    sizes: tuple[int, int],
    submit: Any,
    duration: Any,
    estimate: Any,
    rank: Any,
    size: Any,
    leaf_start: Any,
    pod_start: Any,
    start: Any,
    pass_of: Any,
    progress: Callable[[int], None] | None,
    halves: tuple[Any, ...] | None,
    /,
) -> tuple[bytes, bytes]: ...
