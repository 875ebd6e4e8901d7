"""Reader of a topology service's answers: the part of its fabric that joins a job's hosts, with its routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import HostError, ServiceError
from ..client import Address, ask
from ..discovery import Discovery, Report
from ..served import Served
from . import fabricjson

__all__ = ["NAME", "read"]

NAME = "a topology service"


def read(source: str, hosts: Sequence[str] | None, report: Report) -> Discovery:
    """Ask a service for the part of its fabric that joins some hosts, in one round trip.

    :param source: address of the service, ``tcp://HOST:PORT`` or ``unix:PATH``.
    :param hosts: host names in the job's spelling; None for the whole fabric.
    :param report: receiver of progress.
    :raises ServiceError: if there is no service, or no valid answer in time.
    :raises HostError: if a host is not in the service's fabric.
    """
    address = Address.parse(source)
    report.step(f"asking {address}")
    request: dict[str, object] = {"request": "view", "fields": ["fabric"]}
    if hosts is not None:
        request["hosts"] = list(dict.fromkeys(hosts))
    answer = ask(address, request)
    if "error" in answer:
        kind = HostError if answer.get("kind") == "HostError" else ServiceError
        raise kind(f"{address}: {answer['error']}")
    if "fabric" not in answer:
        raise ServiceError(f"{address}: field fabric: expecting a value, got none")
    found = fabricjson.read_document(answer["fabric"], str(address))
    return replace(found, served=Served(str(address), str(answer.get("digest"))))
