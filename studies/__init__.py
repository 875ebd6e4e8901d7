"""Programs that repeat tables and figures of published work, one folder per source: ``python -m studies SOURCE``.

A source has a module ``cli`` with ``main(arguments)``. ``-o docs/lab`` writes results and pictures there: whole pages,
or tables between marks of a page that people wrote (see `studies.tables.fill`). Nothing here is installed.
"""
