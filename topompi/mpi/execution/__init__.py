"""The execution of schedules by MPI calls: plans of single ranks, alltoallv by carriers, and message buffers."""
