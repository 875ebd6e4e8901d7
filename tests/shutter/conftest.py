"""A time limit for each test of the shutter, because processes that stay stopped never answer."""

import signal

import pytest


@pytest.fixture(autouse=True)
def limited(request):
    """Fail a test after a minute, or after five minutes if it is marked as long."""

    def fail(*_):
        raise TimeoutError("the test took too long")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(300 if request.node.get_closest_marker("long") else 60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
