"""What applications send, without what they compute: halos, transposes, conjugate gradients.

``kernel`` says what a kernel is: phases of messages as arrays, alike in every arena. ``halo`` has ``stencil3d`` and
``stencil4d``, ``transposes`` ``fft3d`` and ``p3dfft``, ``cg`` conjugate gradients; ``registry`` makes them by name.
``orders`` finds the orders of ranks that are compared. ``running`` runs a kernel over MPI, ``replaying`` in the
simulator; the others import neither.
"""

from .kernel import Kernel
from .registry import KERNELS, make_kernel

__all__ = ["KERNELS", "Kernel", "make_kernel"]
