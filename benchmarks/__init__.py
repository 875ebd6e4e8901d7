"""Programs that measure topompi: ``python -m benchmarks.NAME --help``, from the root of the repository."""
