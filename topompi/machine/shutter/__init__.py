"""The shutter: a daemon that measures the jobs of one node while the others stand still for milliseconds.

Standard library only. Programs publish their progress with ``topompi.machine.shutter.progress()``.
"""

from .published import progress

__all__ = ["progress"]
