"""One Slurm for all tests of this folder that need one: its start takes seconds."""

from tests.slurm import slurm_cluster  # noqa: F401 - a fixture
