"""Reads what it is told to, within its limits of memory and time, and says how it went: a line of JSON a case."""

import json
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.readers import READERS
from topompi.errors import TopompiError

MEMORY = 512 << 20  # bytes that a case may take, besides the interpreter and its libraries


def outcome(reader: str, path: Path) -> dict[str, str]:
    """``read``, ``refused`` with the words, or ``failed`` with a traceback."""
    try:
        READERS[reader](path)
    except TopompiError as error:
        builtin = [one for one in type(error).__mro__ if one.__module__ == "builtins"]
        if len(builtin) < 4:  # one more than Exception, BaseException and object
            return {"outcome": "failed", "words": f"{type(error).__name__} derives from no error of Python's own"}
        return {"outcome": "refused", "words": str(error)}
    except BaseException:
        return {"outcome": "failed", "words": traceback.format_exc(limit=-8)}
    return {"outcome": "read", "words": ""}


def main() -> None:
    """One case a line on standard input: the name of the reader and the path, as a JSON list."""
    most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    print("ready", flush=True)
    for line in sys.stdin:
        reader, path = json.loads(line)
        begin = time.process_time()
        told = outcome(reader, Path(path))
        print(json.dumps({**told, "seconds": f"{time.process_time() - begin:.2f}"}), flush=True)


main()
