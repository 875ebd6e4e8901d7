"""The selection of an algorithm for a call: by rules file, measured trial or cost model; the same on all ranks.

``rules``, ``trial``, ``memory`` and ``topompi.prediction`` decide without MPI; ``advisor`` weighs them on rank 0;
``selector`` is the part that a communicator owns.
"""
