"""How long jobs run: as logged, faster by a share, or slower while they share links."""

from .models import SPEEDS, AsLogged, Faster, Ranges, SharedLinks, Speed, find_speed

__all__ = ["SPEEDS", "AsLogged", "Faster", "Ranges", "SharedLinks", "Speed", "find_speed"]
