"""Programs that reproduce tables and figures of published work, one folder per source: ``python -m studies SOURCE``.

The folder of a source has a module ``cli`` with ``main(arguments)``. ``-o docs/lab`` writes results and pictures there:
whole pages, or tables between marks in a page that people wrote (see `studies.tables.fill`). The package is not
installed.
"""
