"""The selection of an algorithm for a call, by rules file, measured trial or cost model; the same on all ranks.

``rules``, ``trial``, ``memory`` and ``topompi.prediction`` decide without MPI. ``advisor`` asks them in order on rank
0. ``selector`` belongs to one communicator and sends rank 0's choices to all ranks.
"""
