"""The commands ``topompi slurm``."""
