"""The live page of a Slurm cluster: its sections, and the state behind its refreshes."""
