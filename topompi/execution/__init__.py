"""The execution of schedules by MPI calls: plans, stages of leaders, and message buffers."""
