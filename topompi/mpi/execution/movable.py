"""Programs of earlier calls, which run again for equal calls with other memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .keys import LASTING, placed

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .compiled import Program

__all__ = ["Movable", "Movables"]

Pair = tuple[int, int]


class Movable:
    """A program of a call with two messages, whose memory may be another at each run.

    It has addresses alone. Whoever runs it keeps the memory alive.

    :param program: the program.
    :param places: addresses of the arrays of both messages.
    :param lengths: bytes of these arrays.
    :param kept: an object that the program needs, for example scratch memory.
    """

    __slots__ = ("_lengths", "_places", "kept", "program")

    def __init__(self, program: Program, places: Pair, lengths: Pair, kept: Any) -> None:
        self.program, self.kept = program, kept
        self._places, self._lengths = places, lengths

    def at(self, places: Any) -> bool:
        """Let the next run use arrays at other addresses; False if they overlap.

        If they overlap, the addresses in the program would not tell to which of the two they belong.
        """
        if places != self._places:
            if _overlap(places, self._lengths):
                return False
            self.program.relocate(self._places, self._lengths, places)
            self._places = places
        return True


class Movables:
    """Movable programs by everything in their calls but addresses.

    :param most: maximum number of programs; a full store is emptied.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[tuple[Hashable, bytes | None], Movable] = {}

    def get(self, name: Hashable, arguments: tuple[object, object]) -> Movable | None:
        """The program of a call, with the call's memory; None if there is none.

        :param name: name of the call, and of the channel if it has several.
        :param arguments: the send and the receive message.
        """
        key, places = placed(arguments, LASTING)
        found = self._found.get((name, key))
        return found if found is not None and found.at(places) else None

    def put(self, name: Hashable, arguments: tuple[object, object], program: Program, kept: Any) -> Movable | None:
        """Add a program; None if its call cannot be told from others, or its memory cannot be moved.

        :param name: name of the call, and of the channel if it has several.
        :param arguments: the send and the receive message, whose memory the program uses at present.
        :param program: the program.
        :param kept: an object that the program needs.
        """
        key, places = placed(arguments, LASTING)
        if key is None or len(places) != 2:
            return None
        lengths = _length(arguments[0]), _length(arguments[1])
        if _overlap(places, lengths):
            return None
        if len(self._found) == self._most:
            self._found.clear()
        made = self._found[name, key] = Movable(program, (places[0], places[1]), lengths, kept)
        return made

    def clear(self) -> None:
        """Drop all programs."""
        self._found.clear()


def _length(message: Any) -> int:
    """Bytes of a message's array, which is the first thing in it."""
    while isinstance(message, list | tuple):
        message = message[0]
    return int(message.nbytes)


def _overlap(places: Any, lengths: Pair) -> bool:
    (one, other), (length, other_length) = places, lengths
    return bool(one < other + other_length and other < one + length)
