"""Fair prices of jobs that share nodes, after POPPA: `python -m studies poppa`."""
