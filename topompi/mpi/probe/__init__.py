"""The tree of a job's hosts, found by measurement alone.

Round trips of short messages show which hosts are on the same switch; streams of long messages show the links' rates.

``tournament``, ``levels``, ``search``, ``rates`` and ``result`` work without MPI: they are given an ``Instrument``.
``measuring`` and ``running`` measure with MPI.
"""

from .errors import ProbeError
from .levels import Level, find_levels
from .rates import Rates, measure_rates
from .result import Probed
from .search import Found, Instrument, search

__all__ = ["Found", "Instrument", "Level", "ProbeError", "Probed", "Rates", "find_levels", "measure_rates", "search"]
