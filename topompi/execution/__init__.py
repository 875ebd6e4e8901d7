"""The execution of schedules by MPI calls: plans of single ranks, collectives over leaders, and message buffers."""
