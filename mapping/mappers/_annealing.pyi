from typing import Any

def anneal(
    offsets: Any,
    targets: Any,
    weight: Any,
    far: Any,
    column: Any,
    near: Any,
    first: Any,
    movable: Any,
    rank_at: Any,
    slot_of: Any,
    place: Any,
    heat: Any,
    trace: Any,
    seed: int,
    by_edges: bool,
    /,
) -> float: ...
