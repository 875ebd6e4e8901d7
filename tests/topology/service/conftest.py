"""A topology service that answers from the routes of a small fabric."""

from collections.abc import Iterator

import pytest

from tests.services import read, running
from topompi.topology import Routes
from topompi.topology.client import Address
from topompi.topology.service.state import Service
from topompi.topology.service.store import RouteStore


@pytest.fixture(scope="module")
def routes() -> Routes:
    return read()


@pytest.fixture(scope="module")
def served(routes: Routes) -> Iterator[tuple[Service, Address]]:
    with running(RouteStore(lambda: routes)) as found:
        yield found
