"""The communication of applications without their computation: halos, transposes, conjugate gradients.

``kernel`` defines a kernel as phases of messages in arrays, the same for real runs and simulations. ``halo`` has
``stencil3d`` and ``stencil4d``, ``transposes`` has ``fft3d`` and ``p3dfft``, ``cg`` has conjugate gradients;
``registry`` makes them by name. ``orders`` finds the orders of ranks that are compared. ``running`` runs a kernel over
MPI, ``replaying`` in the simulator; the other modules import neither MPI nor the simulator.
"""

from .kernel import Kernel
from .registry import KERNELS, make_kernel

__all__ = ["KERNELS", "Kernel", "make_kernel"]
