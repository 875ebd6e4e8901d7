"""The tree of a job's hosts, found by measurement alone.

Round trips of short messages show which hosts are on the same switch; streams of long messages show the links' rates.

``tournament``, ``levels``, ``search``, ``rates`` and ``result`` work without MPI: they are given an ``Instrument``.
``measuring`` and ``running`` measure with MPI.
"""

from .errors import ProbeError
from .levels import HostClusters, find_levels
from .rates import ProbedRates, measure_rates
from .result import Probed
from .search import FoundClusters, Instrument, search

__all__ = [
    "FoundClusters",
    "HostClusters",
    "Instrument",
    "ProbeError",
    "Probed",
    "ProbedRates",
    "find_levels",
    "measure_rates",
    "search",
]
