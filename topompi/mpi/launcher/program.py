"""Runs of a program (script, ``-m`` module, ``-c`` code or standard input) as Python's own command line runs it."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType

__all__ = ["outside", "run"]

_kept: list[ModuleType] = []  # earlier ``__main__`` modules, because Python clears a module without references


def run(words: Sequence[str]) -> None:
    """Run a program in a new module ``__main__``, which exists until Python exits.

    :param words: the program, ``-m`` and a module, ``-c`` and code, or ``-``; then the program's arguments.
    :raises BaseException: any exception of the program.
    """
    first = words[0]
    if first == "-m":
        sys.argv[:] = words[1:]
        _search_first(os.getcwd())
        _new_main()
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]  # what python -m itself calls
    elif first == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        _search_first("")
        _execute(compile(words[1], "<string>", "exec", dont_inherit=True), __loader__=BuiltinImporter)
    elif first == "-":
        sys.argv[:] = words
        _search_first("")
        code = compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True)
        _execute(code, __file__="<stdin>", __cached__=None, __loader__=BuiltinImporter)
    else:
        sys.argv[:] = words
        _run_file(first)


def _run_file(name: str) -> None:
    path = os.path.join(os.getcwd(), name)  # symbolic links stay, as in Python
    if os.path.isdir(path) or _is_archive(path):
        if sys.flags.safe_path:
            sys.path.insert(0, "")
        sys.path[0] = os.getcwd() if name == os.curdir else path
        _new_main()
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]  # as above
        return
    _search_first(os.path.realpath(os.path.dirname(os.path.realpath(path)) or "."))
    loader = (SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader)("__main__", path)
    _execute(_code_of(path, loader), __file__=path, __cached__=None, __loader__=loader)


def _code_of(path: str, loader: SourceFileLoader | SourcelessFileLoader) -> CodeType:
    """The code of a file. No .pyc file is written for a source file, because Python writes none for a script."""
    if isinstance(loader, SourcelessFileLoader):
        compiled = loader.get_code("__main__")
        assert compiled is not None  # loaders raise an error rather than return None
        return compiled
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    from zipfile import is_zipfile

    return os.path.isfile(path) and not path.endswith((".py", ".pyc")) and is_zipfile(path)


def _search_first(folder: str) -> None:
    """Replace the first folder of ``sys.path`` by the one that Python would search first for this program."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _new_main(**facts: object) -> ModuleType:
    main = ModuleType("__main__")
    vars(main).update({"__annotations__": {}, "__builtins__": builtins, **facts})
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    return main


def _execute(code: CodeType, **facts: object) -> None:
    exec(code, vars(_new_main(**facts)))


def outside(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback from the program's first frame on.

    :param trace: the traceback of an exception raised by ``run``, which begins with the launcher's frames, or None.
    """
    here = os.path.dirname(__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(here):
        trace = trace.tb_next
    return trace
