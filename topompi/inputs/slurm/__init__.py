"""Readers of Slurm's texts: topologies, environment, commands, queues, accounting."""
