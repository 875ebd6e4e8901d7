"""Everything that Slurm writes, as values: topologies, environment, commands, queues, accounts."""
