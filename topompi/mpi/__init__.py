"""The MPI half: communicators whose collectives know the network; tools that record, tune, probe and launch programs.

``execution`` runs schedules, ``prediction`` knows what calls cost, ``selection`` chooses, ``dispatch`` leads from a
call to what runs it, and ``communicator`` has the classes that users hold. ``profile`` records programs, ``tuning`` and
``probe`` measure, ``launcher`` runs a program with these communicators.
"""

from ..inputs.extensions import rooms_when_used

__getattr__ = rooms_when_used(
    __name__,
    ["communicator", "dispatch", "execution", "launcher", "prediction", "probe", "profile", "selection", "tuning"],
)
