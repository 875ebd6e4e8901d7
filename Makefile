# Three commands do everything, setup included: `make demo`, `make bench` and `make test`. MPI=mpich takes MPICH instead of Open MPI.
MPI ?= openmpi
PYTHON ?= python3

VENV := .venv-$(MPI)
PY := $(VENV)/bin/python
EXTRA := $(if $(filter mpich,$(MPI)),mpich,mpi)
# More ranks than cores: Open MPI's idle ranks must yield, MPICH's do.
MPIRUN := $(VENV)/bin/mpirun $(if $(filter mpich,$(MPI)),,--allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1)
FABRIC := osu_like_bench/fabrics/fattree64
comma := ,
BENCH := $(MPIRUN) -n 8 $(PY) -m osu_like_bench
# Eight ranks, two a host, on hosts of three different distances: same leaf, same pod, other pod.
PLACE := --topology $(FABRIC).ibnetdiscover.xz --lfts $(FABRIC).lfts.xz --hosts 'h[0000-0001,0004,0016]' --place cyclic
BENCH_OPTIONS := -m 1:1M -i 200 -x 20 -c --vs native $(PLACE)

.PHONY: bytecode demo docs bench bench-applications bench-emulated bench-execution bench-mapping bench-schedules studies fuzz test test-long test-exhaustive test-versions test-sdist test-sanitize coverage test-mpi4py test-strangers soak lint venv wheel audit clean

venv: $(VENV)/done

# Stamps: the environment, in it the package, and all that tests, documents and plots need. The package is installed
# editable, and compiled as if it were not: where Python is told to write no bytecode, every rank would else compile it at
# its start. `pip install NAME[extras]` then adds what the extras name, and builds nothing again.
PIP := $(PY) -m pip -qq --disable-pip-version-check
OPTIONAL := $(VENV)/optional.log
$(VENV)/made:
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/package: $(VENV)/made pyproject.toml $(wildcard topompi/*/_*.c topompi/*/*/_*.c topompi/_*.h topompi/*/_*.h topompi/*/*/_*.h)
	@echo 'installing topompi and what it needs in $(VENV)'
	@$(PIP) install -e .
	@$(PY) -m compileall -q topompi $(wildcard schedules mapping) osu_like_bench
	@touch $@

$(VENV)/done: $(VENV)/package
	@echo 'installing Open MPI or MPICH, and what tests, documents and plots need, in $(VENV)'
	@$(PIP) install 'topompi[$(EXTRA),plot,test,lint,docs]'
	@$(PIP) install 'topompi[peers]' >$(OPTIONAL) 2>&1 || \
		echo 'other mappers (extra peers) are not installed, their tests will be skipped: $(OPTIONAL) says why'
	@$(PIP) download --no-binary mpi4py --no-deps -d $(VENV)/sources \
		"mpi4py==$$($(PY) -c 'import mpi4py; print(mpi4py.__version__)')" >>$(OPTIONAL) 2>&1 || \
		echo "mpi4py's sources are not here, its tests will be skipped: $(OPTIONAL) says why"
	@touch $@

# What topompi does, in a minute: pictures in topompi-demo/. It needs the package alone.
demo: $(VENV)/package
	@$(PY) -m topompi demo

# The pages of docs/ as a site in site/, with references made from the command line and the docstrings; no network is needed.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

bench: venv
	$(BENCH) gather $(BENCH_OPTIONS)
	$(BENCH) bcast $(BENCH_OPTIONS)
	$(BENCH) alltoall $(BENCH_OPTIONS)

bench-schedules: venv
	$(PY) -m benchmarks.schedules

# The communicator's and the executor's overheads, beside native calls.
bench-execution: venv
	$(PY) -m benchmarks.overhead
	$(PY) -m benchmarks.execution
	$(PY) -m benchmarks.lifetimes

bench-mapping: venv
	$(PY) -m benchmarks.mapping

# The examples with and without their one line; needs root.
bench-applications: venv
	$(PY) -m benchmarks.applications $(APPLICATIONS_OPTIONS)

# What calls cost and gain through topompi, in one job with the library; needs root. MPICH's side needs its virtual
# environment too: make venv MPI=mpich. With the same file a further run goes on where this one ended.
bench-emulated: venv
	$(PY) -m benchmarks.emulated --pythons $(PY),.venv-mpich/bin/python $(EMULATED_OPTIONS)

# Tables and figures of published work, repeated: SOURCE is a folder of studies/; writes pages and pictures of docs/lab.
studies: venv
	$(PY) -m studies $(SOURCE) -o docs/lab $(STUDIES_OPTIONS)

# What needs no MPI library runs once, with Open MPI's Python, on both processors; what starts MPI jobs runs with either
# library, one job at a time: the tests of MPI_TESTS.
MPI_TESTS ?= tests/mpi
PURE := $(PY) -m pytest -q -n 2 --dist loadfile --ignore tests/mpi -m
JOBS := $(PY) -m pytest -q $(MPI_TESTS) -m

# Where Python writes no bytecode, each rank would compile what was changed since the package was installed.
bytecode: venv
	@$(PY) -m compileall -q topompi $(wildcard schedules mapping) osu_like_bench

# WHOLE=1 adds the long tests. Property tests keep a third of their examples: where CI is set they are the same on each
# run, and more of them would only be run again; make test-long draws all.
test: bytecode
ifdef WHOLE
	$(if $(filter mpich,$(MPI)),,$(PURE) "not exhaustive" $(PYTEST_OPTIONS))
	$(JOBS) "not exhaustive" --durations 12 --durations-min 20 $(PYTEST_OPTIONS)
else
	$(if $(filter mpich,$(MPI)),,$(PURE) "not long and not exhaustive" $(PYTEST_OPTIONS))
	$(JOBS) "not long and not exhaustive" $(PYTEST_OPTIONS)
endif

# Property tests run once more, with three times as many examples.
test-long: bytecode
	$(if $(filter mpich,$(MPI)),,TOPOMPI_THOROUGH=1 $(PURE) "(long or hypothesis) and not exhaustive" $(PYTEST_OPTIONS))
	$(JOBS) "long and not exhaustive" --durations 12 --durations-min 20 $(PYTEST_OPTIONS)

test-exhaustive: venv
	$(JOBS) exhaustive $(PYTEST_OPTIONS)

# The quick tests, those of properties apart, with other versions of Python, and with the least versions of packages that
# pyproject.toml names. A Python that is not on this machine is skipped: it is looked for in PATH and among pyenv's.
VERSIONS ?= 3.11-least 3.12 3.13
UV := UV_PYTHON_DOWNLOADS=never PATH="$$PATH:$$(echo $(HOME)/.pyenv/versions/*/bin | tr ' ' :)" $(VENV)/bin/uv
test-versions: venv $(VERSIONS:%=version-%)
version-%:
	@$(PIP) install uv
	@if $(UV) python find -q $(word 1,$(subst -, ,$*)) >/dev/null 2>&1; then $(MAKE) found-$*; \
		else echo 'skipped: Python $* is not on this machine'; fi
found-%: HERE = build/versions/$*/bin/python
found-%:
	$(UV) venv -q --clear --python $(word 1,$(subst -, ,$*)) build/versions/$*
	$(UV) pip install -q --python $(HERE) $(if $(findstring least,$*),--resolution lowest-direct) -e '.[$(EXTRA),plot,test]'
	$(HERE) -m pytest -q -n 2 --dist loadfile --ignore tests/mpi -m "not long and not hypothesis and not exhaustive" $(PYTEST_OPTIONS)
	$(HERE) -m pytest -q tests/mpi/communicator tests/mpi/execution -m "not long and not exhaustive" $(PYTEST_OPTIONS)

# The source distribution is built, and the quick tests pass in what it unpacks to.
test-sdist: venv
	rm -rf build/sdist && mkdir -p build/sdist && $(PIP) install build
	$(PY) -m build -q --sdist -o build/sdist . && tar -x --strip-components 1 -C build/sdist -f build/sdist/topompi-*.tar.gz
	TOPOMPI_SHARED_DATA=$(CURDIR)/../shared/data $(MAKE) -C build/sdist test

# The part of the library's lines that the tests without MPI run; CONTRIBUTING.md has the number.
coverage: venv
	$(PY) -m pip install --quiet --disable-pip-version-check 'pytest-cov>=5'
	$(PURE) "not long and not exhaustive" --cov=topompi --cov=schedules --cov=mapping --cov-report=term:skip-covered $(PYTEST_OPTIONS)

# The tests that run C, with extensions that AddressSanitizer and UndefinedBehaviorSanitizer watch; a minute or two. They
# are built from a copy in build/sanitize, so that none of their files is taken for an ordinary one. What Python itself
# never frees is not looked for. The import at the end fails where an extension was not built: tests would only be skipped.
SANITIZED := build/sanitize
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
WATCHED = LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	PYTHONPATH= TOPOMPI_SHARED_DATA=$(CURDIR)/../shared/data $(CURDIR)/$(PY)
SANITIZE_TESTS ?= tests/project/test_extensions.py tests/netsim/test_netsim.py tests/netsim/test_packets.py \
	tests/netsim/test_sessions.py tests/mapping/test_refine.py
test-sanitize: venv
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	cp -a topompi schedules mapping osu_like_bench tests benchmarks studies pyproject.toml README.md LICENSE $(SANITIZED)
	find $(SANITIZED) -name '*.so' -delete
	cd $(SANITIZED) && CFLAGS="$(SANITIZE) -g -O1" LDFLAGS="$(SANITIZE)" \
		$(CURDIR)/$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps -w wheel . && \
		$(CURDIR)/$(PY) -m zipfile -e wheel/*.whl .
	cd $(SANITIZED) && $(WATCHED) -c "import topompi.netsim._flows, topompi.netsim.packets._packets, \
		topompi.mapping.mappers._annealing"
	cd $(SANITIZED) && $(WATCHED) -m pytest -q -p no:cacheprovider -m "not long and not exhaustive" -k "not simgrid and not page" \
		$(SANITIZE_TESTS) $(PYTEST_OPTIONS)

# mpi4py's own tests in every mode at 1 to 5 ranks.
test-mpi4py: venv
	$(PY) -m pytest -q tests/mpi/communicator/test_mpi4py_suite.py $(PYTEST_OPTIONS)

# Other people's packages in every mode, in virtual environments of their own, which are made here. What cannot be had is said and
# skipped: petsc4py, slepc4py, h5py, dolfinx and torch come from Debian's packages. --quick takes minutes, --help tells more.
STRANGERS := --environments $(if $(filter mpich,$(MPI)),mpich,debian$(comma)openmpi)
test-strangers: venv
	$(PYTHON) -m tests.strangers $(STRANGERS) $(STRANGERS_OPTIONS)

# Damaged and hostile inputs for every reader; those that fail are kept in build/fuzz.
FUZZ_SECONDS ?= 300
fuzz: venv
	$(PY) -m tests.fuzz --seconds $(FUZZ_SECONDS) --keep build/fuzz $(FUZZ_OPTIONS)

# All collectives, splits, errors and frees at random on 5 ranks, in every mode, compared with native bit by bit.
SOAK_SECONDS ?= 3600
soak: venv
	$(PY) -m tests.hostile.soak $(SOAK_SECONDS) $(SOAK_SEED)

# A wheel for this machine, in dist/.
wheel: $(VENV)/made
	$(PY) -m pip wheel --no-deps -w dist .

lint: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Known holes of what is installed, by pip-audit; where it or its list cannot be had, a line says that nothing was looked up.
audit: venv
	$(PY) -m tests.audit $(VENV)

clean:
	rm -rf build site topompi/*/*.so .venv-openmpi .venv-mpich .venv-strangers-* .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
