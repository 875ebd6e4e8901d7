"""The communication of applications without their computation: halos, transposes, conjugate gradients.

``topompi.machine.interference.kernels`` defines the kernels as phases of messages. ``orders`` finds the orders of
ranks that are compared, without MPI or the simulator. ``running`` runs a kernel over MPI,
``replaying`` in the simulator.
"""

from topompi.machine.interference.kernels import KERNELS as ALL
from topompi.machine.interference.kernels import Kernel, make_kernel

__all__ = ["FORMER", "KERNELS", "Kernel", "make_kernel"]

KERNELS = {name: kind for name, kind in ALL.items() if kind.measured}
FORMER = {"cg": "pcg"}  # names until 0.2, still read
