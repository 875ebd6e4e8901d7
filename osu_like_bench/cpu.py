"""The model of this machine's processor."""

from __future__ import annotations

import platform

from topompi.inputs.kernel import kernel_text

__all__ = ["cpu_model"]


def cpu_model() -> str:
    """Return the processor's model as the system names it, else its architecture."""
    lines = kernel_text("/proc/cpuinfo").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
