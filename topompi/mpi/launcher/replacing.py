"""The replacement of mpi4py's communicators by topompi's, when a program imports ``mpi4py.MPI``.

The classes are replaced right after the import. ``COMM_WORLD`` and ``COMM_SELF`` are replaced as soon as MPI is
initialised, because mpi4py makes no communicator objects earlier: the import initialises MPI, unless the program has
set ``mpi4py.rc`` to call ``Init`` itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...errors import TopompiError
from ...inputs.extensions import library_hint

if TYPE_CHECKING:
    from importlib.abc import Loader  # its import brings tempfile and lzma

    from ..communicator import Intracomm
    from ..profile.live import Recording

__all__ = ["Replacing"]

NAME = "mpi4py.MPI"


class Replacing:
    """The changes that the launcher makes to ``mpi4py.MPI``.

    :param fail: function that ends the program; it takes the text of an error, and True on the rank that prints it.
    """

    def __init__(self, fail: Callable[[str, bool], None]) -> None:
        self._fail = fail
        self._recording: Recording | None = None

    def await_import(self) -> None:
        """Arrange that ``replace`` is called when ``mpi4py.MPI`` is imported; call it now if it is imported already."""
        if NAME in sys.modules:
            self.replace(sys.modules[NAME])
        else:
            sys.meta_path.insert(0, _Finder(self.replace))

    def replace(self, module: Any) -> None:
        """Replace the classes in ``mpi4py.MPI`` by topompi's, and the objects ``COMM_WORLD`` and ``COMM_SELF``.

        The objects are replaced now if MPI is initialised, and then the call is collective; else they are replaced when
        the program initialises MPI.

        :param module: the module ``mpi4py.MPI``.
        """
        from ..communicator.kinds import KINDS
        from ..communicator.lifetime import pickle_by_name
        from ..communicator.standin import take_places

        # pkl5 is imported before the classes are replaced, because its classes derive from mpi4py's and call
        # Comm.__new__, which is unsafe for bases with slots, as topompi's classes have.
        import_module("mpi4py.util.pkl5")
        take_places(KINDS)
        pickle_by_name()
        if module.Is_initialized():
            self._begin(module)
        else:
            for name in ("Init", "Init_thread"):
                setattr(module, name, self._beginning(module, getattr(module, name)))

    def _beginning(self, module: Any, native: Callable[..., Any]) -> Callable[..., Any]:
        """A replacement of ``MPI.Init`` or ``MPI.Init_thread``, which initialises MPI, and then topompi.

        :param module: the module ``mpi4py.MPI``.
        :param native: mpi4py's function.
        """

        @functools.wraps(native)
        def initialise(*args: Any, **named: Any) -> Any:
            level = native(*args, **named)
            self._begin(module)
            return level

        return initialise

    def _begin(self, module: Any) -> None:
        """Find the world's topology, re-order its ranks, and start a recording, as the settings ask; collective."""
        from ..communicator.handle import bare, lineage_of
        from ..communicator.kinds import Intracomm
        from ..communicator.state import begin, leave_to_library

        world, alone = bare(Intracomm, module.COMM_WORLD), bare(Intracomm, module.COMM_SELF)
        leave_to_library(alone)
        try:
            begin(world)
            ours = _mapped(world)
            lineage_of(ours).lasts = lineage_of(alone).lasts = True
            module.COMM_WORLD = ours
            module.COMM_SELF = alone
            self._recording = _recording(module, ours)
        except (TopompiError, OSError) as error:
            self._fail(str(error), world.Get_rank() == 0)
        if self._recording is not None:
            native = module.Finalize

            @functools.wraps(native)
            def finalise() -> None:
                self.close(joint=True)
                native()

            module.Finalize = finalise

    def close(self, *, joint: bool) -> None:
        """Stop the recording, if there is one.

        :param joint: True if all ranks stop it together; False if this rank alone ends, so that its part of the
            recording stays separate.
        """
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.close(joint=joint)


class _Finder:
    """An import hook for the module ``mpi4py.MPI``, used once, which calls a function after the import.

    :param then: the function, which takes the module.
    """

    def __init__(self, then: Callable[[ModuleType], None]) -> None:
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Remove this hook at the first import of ``mpi4py.MPI``, and return a spec whose loader calls ``then``."""
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)  # type: ignore[assignment]  # typed otherwise, but a loader
        return spec


class _Loader:
    """A loader that calls a function after the module is loaded, and then removes itself from the module.

    :param loader: the module's real loader.
    :param then: the function, which takes the module.
    """

    def __init__(self, loader: Loader, then: Callable[[ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module. If no MPI library is found, the error gets a note with advice."""
        try:
            return self._loader.create_module(spec)
        except (ImportError, RuntimeError) as error:
            error.add_note(library_hint(error))
            raise

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, then the function."""
        try:
            self._loader.exec_module(module)
        except (ImportError, RuntimeError) as error:
            error.add_note(library_hint(error))
            raise
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._then(module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)


def _mapped(world: Intracomm) -> Intracomm:
    """The communicator of all processes, re-ordered for the communication graph that ``TOPOMPI_MAP`` names; collective.

    :param world: the communicator of all processes in the given order, the result if there is no graph.
    """
    graph = os.environ.get("TOPOMPI_MAP")
    if not graph:
        return world
    from ..communicator.remap.launched import in_order_of

    ordered: Intracomm = in_order_of(world, graph)
    return ordered


def _recording(module: Any, world: Intracomm) -> Recording | None:
    """Start the recording of messages that ``TOPOMPI_PROFILE`` asks for; None if it asks for none. Collective.

    It also records messages by windows and persistent requests.
    """
    if not os.environ.get("TOPOMPI_PROFILE"):
        return None
    from ..profile import live, requests, windows

    module.Win, module.Prequest = windows.Win, requests.Prequest
    return live.record_from_environment(world)
