"""The machine half: many jobs on one machine. No MPI.

``jobs`` simulates queues and allocations, ``interference`` jobs that share links, ``colocation`` jobs that share nodes.
``slurm`` works beside Slurm, ``shutter`` measures the jobs of one node, and ``daemon`` has what long-running programs
share.
"""

from ..inputs.extensions import rooms_when_used

__getattr__ = rooms_when_used(__name__, ["colocation", "daemon", "interference", "jobs", "shutter", "slurm"])
