"""The command line: ``topompi``."""

from .app import main

__all__ = ["main"]
