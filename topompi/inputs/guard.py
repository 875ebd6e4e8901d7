"""Translation of the errors that libraries raise on damaged input into the reader's own error, with the file's name."""

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

# The errors that unpacking, parsing and allocating raise on damaged bytes. ValueError itself is left out, because
# readers raise errors of their own for bad values, and any other ValueError is a bug, which must stay visible.
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
    """Replace errors that a library raises on damaged input by ``error``; topompi's own errors pass unchanged.

    :param name: beginning of the message, namely the file's name, or those of the archive and the member.
    :param error: class of the error that is raised.
    """
    try:
        yield
    except TopompiError:
        raise
    except MemoryError as problem:
        raise error(f"{name}: expecting what fits into memory, got more") from problem
    except RecursionError as problem:
        raise error(f"{name}: expecting brackets nested within reason, got more") from problem
    except OSError as problem:  # gzip's own errors are OSErrors, too
        raise error(f"{name}: cannot be read: {problem.strerror or problem}") from problem
    except _DAMAGE as problem:
        raise error(f"{name}: cannot be read, it is damaged: {problem or 'it ends too early'}") from problem
