"""A digest by which clients recognise a service's routes; equal routes have equal digests in every process."""

from __future__ import annotations

import hashlib
from dataclasses import fields

import numpy as np

from ..computed import ComputedLinks
from ..fabric import Fabric
from ..routes import Routes
from ..torus import SwitchTorus

__all__ = ["digest_of"]

DIGITS = 16


def digest_of(routes: Routes) -> str:
    """Hexadecimal digest of the fabric, the engine's name and the table of next-hop links.

    Computed next-hop links are not part of it, because the fabric determines them.

    :param routes: the routes over the whole fabric.
    Cost: one pass over the table of next-hop links, some milliseconds per million.
    """
    found = hashlib.sha256()
    known: list[object] = [getattr(routes.fabric, field.name) for field in fields(Fabric)]
    known += [routes.engine, None if isinstance(routes.table, ComputedLinks) else routes.next_link]
    for value in known:
        if isinstance(value, SwitchTorus):
            found.update(repr((value.dims, value.wrap)).encode())
            value = value.coordinates
        if isinstance(value, np.ndarray):
            found.update(repr((value.shape, value.dtype.str)).encode())
            found.update(np.ascontiguousarray(value).data)
        else:
            found.update(repr(value).encode())
    return found.hexdigest()[:DIGITS]
