"""The command line ``topompi``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app import main

__all__ = ["main"]


def __getattr__(name: str) -> object:
    """Import ``main`` at its first use, because modules that import only one module of this package do not need it."""
    if name == "main":
        from .app import main

        return main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
