"""The model of this machine's processor."""

from __future__ import annotations

import platform

__all__ = ["cpu_model"]


def cpu_model() -> str:
    """Return the processor's model as the system names it, else its architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(models, platform.machine())
    except OSError:
        return platform.processor() or platform.machine()
