"""Work beside a Slurm that is not modified: nodes for jobs, chosen by the topology."""
