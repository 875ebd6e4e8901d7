"""Tests of the bridge that runs beside Slurm."""
