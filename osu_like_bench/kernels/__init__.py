"""The communication of applications without their computation: halos, transposes, conjugate gradients.

``topompi.interference.kernels`` defines the kernels as phases of messages. ``orders`` finds the orders of ranks that
are compared, without MPI or the simulator. ``running`` runs a kernel over MPI, ``replaying`` in the simulator.
"""

from topompi.interference.kernels import KERNELS, Kernel, make_kernel

__all__ = ["KERNELS", "Kernel", "make_kernel"]
