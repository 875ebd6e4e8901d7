"""The communication of applications: halos, transposes, conjugate gradients, and their programs.

``kernel`` defines a kernel as phases of messages in arrays, the same for real runs and simulations. ``halo`` has
``stencil``, ``stencil3d`` and ``stencil4d``, ``transposes`` has ``alltoall``, ``fft3d`` and ``p3dfft``, ``pcg`` has
conjugate gradients on a stencil, ``nas`` has ``ft``, ``cg``, ``bt`` and ``mg``; ``registry`` makes them by name.
``programs`` makes traces of kernels, with bursts between their iterations.
"""

from .kernel import Kernel
from .programs import trace_of
from .registry import KERNELS, make_kernel

__all__ = ["KERNELS", "Kernel", "make_kernel", "trace_of"]
