"""What a program really sent: recording, analysis, pictures.

Where things are: ``recording`` what is known of a run, ``file`` its file, ``monitored`` recording by Open MPI,
``analysis`` where messages went, ``summary`` all of it in one table, ``pictures`` and ``colours`` the same drawn,
``export`` files for other programs.
"""

from __future__ import annotations

from .errors import ProfileError
from .file import read_profile, write_profile
from .recording import Profile

__all__ = ["Profile", "ProfileError", "read_profile", "write_profile"]
