"""The figures of the reference, one module each, reproduced by simulation: ``python -m studies subramoni``.

A module has ``TITLE`` and ``PAPER``, what the reference reports, and ``draw(full) -> Figure``. ``jobs`` places the
jobs, ``contest`` times what competes, ``figure`` is what comes out, ``cli`` runs them and writes the page. The
reference is H. Subramoni, *Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems*,
2013.
"""
