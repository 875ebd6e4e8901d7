"""Profiles of programs: five metrics per node and the shares of MPI calls, read from the reports of other tools."""
