"""The algorithms that would run if the ranks of a virtual placement really ran on its hosts."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from ..selection.classes import Key, middle_of
from ..selection.selector import Selector
from .common import Common

if TYPE_CHECKING:
    from ..prediction.predictor import Predictor
    from ..prediction.untuned import Prediction

__all__ = ["OnTheNetwork"]


class OnTheNetwork:
    """The cost model's choices for a virtual placement, as if the ranks really ran on its hosts; without messages.

    :param common: the communicator's shared state, with the virtual placement.
    :param selector: the communicator's selector, asked which algorithms can run.
    """

    def __init__(self, common: Common, selector: Selector) -> None:
        self._common, self._selector = common, selector
        self._made: dict[Key, Prediction] = {}

    @cached_property
    def _predictor(self) -> Predictor:
        from ..prediction.libraries import model_of
        from ..prediction.machines import machine_from
        from ..prediction.predictor import Predictor

        interface = replace(self._common.interface, virtual=False)
        library = model_of(MPI.Get_library_version())
        return Predictor(interface, library, self._common.siblings, machine_from(os.environ))

    def predict(self, key: Key, root: int) -> Prediction:
        """The choice for a class of calls and the root of its first call. The cost model runs once per class.

        :param key: the class: method, size class, needs of the operation.
        :param root: the root; it counts only in the first call of a class.
        """
        if key not in self._made:
            from ..prediction.untuned import predict

            runs = partial(self._selector.runs, key)
            self._made[key] = predict(
                self._predictor, key[0], middle_of(key[1]), root, runs, commutative=not key[2].order
            )
        return self._made[key]
