"""From a schedule to MPI calls: plans, the leaders' stages, message buffers."""
