"""What libraries raise over damaged input becomes the error of who reads it, with the name of the file."""

from __future__ import annotations

import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import TopompiError

__all__ = ["guarded"]

# What unpacking, parsing and allocating raise over bytes that are not what they claim to be. No ValueError as such:
# what a reader of ours finds wrong is its own error, and anything else is a mistake of ours that must be seen.
_DAMAGE = (
    EOFError,
    UnicodeError,
    ArithmeticError,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def guarded(name: str, error: type[TopompiError]) -> Iterator[None]:
    """Raise ``error`` in place of what a library raises over damaged input; our own errors pass.

    :param name: what messages begin with: the file, or archive and member.
    :param error: what to raise.
    """
    try:
        yield
    except TopompiError:
        raise
    except MemoryError as problem:
        raise error(f"{name}: expecting what fits into memory, got more") from problem
    except RecursionError as problem:
        raise error(f"{name}: expecting brackets nested within reason, got more") from problem
    except OSError as problem:  # gzip's errors are some too
        raise error(f"{name}: cannot be read: {problem.strerror or problem}") from problem
    except _DAMAGE as problem:
        raise error(f"{name}: cannot be read, it is damaged: {problem or type(problem).__name__}") from problem
