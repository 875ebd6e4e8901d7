"""Files that help MPI libraries without us: MPICH's coordinates, Open MPI's rules for its own algorithms."""

from .coordinates import write_coordinates
from .ompi import write_ompi_rules

__all__ = ["write_coordinates", "write_ompi_rules"]
