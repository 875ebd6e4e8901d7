"""Run times of jobs: as logged, shorter by a share, or longer while they share links."""

from .models import SPEEDS, AsLogged, Faster, Ranges, SharedLinks, Speed, find_speed

__all__ = ["SPEEDS", "AsLogged", "Faster", "Ranges", "SharedLinks", "Speed", "find_speed"]
