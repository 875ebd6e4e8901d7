"""Readers of Slurm's files, environment variables, and commands' outputs: topologies, queues, accounting."""
