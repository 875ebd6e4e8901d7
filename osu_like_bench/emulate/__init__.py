"""Real MPI jobs on an emulated network: namespaces as hosts, bridges as switches, shaped veth pairs as links.

``spec`` defines the network, ``network`` makes it, ``records`` keeps a record of it, ``agent`` and ``launch`` start
jobs on it, ``peers`` are the MPI libraries, ``monitor`` and ``verify`` watch and measure it; ``session`` combines them
in a context manager, ``cli`` on the command line.
"""

from .session import Emulated, Finished, LaunchOptions, take_down
from .spec import LinkRates, emulated_fabric, emulated_routes

__all__ = ["Emulated", "Finished", "LaunchOptions", "LinkRates", "emulated_fabric", "emulated_routes", "take_down"]
