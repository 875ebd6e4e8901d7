"""Which algorithm runs for a call: rules file, then measured trial, then cost model; the same on all ranks.

``rules``, ``trial``, ``memory`` and ``model`` decide without MPI; ``advisor`` weighs them at rank 0; ``selector`` is
what a communicator holds.
"""
