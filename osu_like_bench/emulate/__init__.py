"""Real MPI jobs on an emulated network: namespaces as hosts, bridges as switches, shaped veth pairs as links.

``spec`` says what to emulate, ``network`` makes it, ``state`` knows what was made, ``agent`` and ``launch`` start jobs
on it, ``peers`` are the MPI libraries to start, ``monitor`` and ``verify`` watch and measure it; ``session`` is all of
it as a context, ``cli`` on the command line.
"""

from .session import Emulated, Finished, LaunchOptions, take_down
from .spec import Rates, emulated_fabric

__all__ = ["Emulated", "Finished", "LaunchOptions", "Rates", "emulated_fabric", "take_down"]
