"""The communication of applications: halos, transposes, conjugate gradients, and their programs.

``kernel`` defines a kernel as phases of messages in arrays, the same for real runs and simulations. ``halo`` has
``stencil3d`` and ``stencil4d``, ``transposes`` has ``fft3d`` and ``p3dfft``, ``cg`` has conjugate gradients;
``registry`` makes them by name. ``programs`` makes traces of kernels, with bursts between their iterations.
"""

from .kernel import Kernel
from .programs import trace_of
from .registry import KERNELS, make_kernel

__all__ = ["KERNELS", "Kernel", "make_kernel", "trace_of"]
