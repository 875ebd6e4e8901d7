"""Models of jobs' run times: as logged, shorter by a percentage, or longer while jobs share links."""

from .models import SPEEDS, AsLogged, Faster, Ranges, SharedLinks, Speed, SpeedProduct, find_speed

__all__ = ["SPEEDS", "AsLogged", "Faster", "Ranges", "SharedLinks", "Speed", "SpeedProduct", "find_speed"]
