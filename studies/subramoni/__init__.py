"""The figures of the reference, one module each, reproduced by simulation: ``python -m studies subramoni``.

A module has ``TITLE``, ``PAPER`` (the reference's result) and ``draw(full) -> Figure``. ``jobs`` places the jobs,
``contest`` times the competing algorithms, ``figure`` defines the results, ``cli`` runs the modules and writes the
page. The reference is H. Subramoni, *Topology-Aware MPI Communication and Scheduling for High Performance Computing
Systems*, 2013.
"""
