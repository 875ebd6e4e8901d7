"""Readers of topology sources, one module per format, which is recognised by the source's content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from ...errors import ServiceError, SourceError, TopompiError
from ...inputs import InputFile, guarded, kinds_of, open_inputs
from ...inputs.extensions import names_function, result_of
from .. import synthetic
from ..client import Address
from ..discovery import Discovery, Report
from ..fabric import Fabric
from ..routecheck import check_routes, with_routes
from ..routes import Routes
from . import (
    automatic,
    clouds,
    coordinates,
    dbcsv,
    fabricjson,
    iblinkinfo,
    ibnetdiscover,
    ibports,
    netq,
    nodemap,
    opalinks,
    service,
    slurm,
    slurm_nodes,
    slurm_yaml,
    tables,
)

__all__ = ["is_input", "load", "load_routes"]

# Each module has NAME, recognise(head) and read(texts, report); at most one module recognises the first bytes of a
# text.
FORMATS: tuple[ModuleType, ...] = (
    fabricjson,
    ibnetdiscover,
    ibports,
    iblinkinfo,
    dbcsv,
    opalinks,
    slurm,
    slurm_yaml,
    slurm_nodes,
    coordinates,
    nodemap,
    netq,
    clouds,
)


def load(
    source: str | os.PathLike[str],
    lfts: str | os.PathLike[str] | None = None,
    report: Report | None = None,
    hosts: Sequence[str] | None = None,
) -> Discovery:
    """Read a topology source of any kind; its routes are those of its forwarding tables, else computed.

    :param source: one of these: a file, directory or tar archive of any known format, plain or packed with xz or gz;
        ``FILE#NAME``, one of the topologies in a file of Slurm; a synthetic fabric in words, for example ``stampede``
        or ``xgft:20,16;1,16``; a function ``module:function`` without parameters that returns a ``Fabric`` or a
        ``Discovery`` (the current directory is searched first); a topology service, ``tcp://HOST:PORT`` or
        ``unix:PATH``; ``auto``, see ``automatic.find``.
    :param lfts: file, directory or archive with forwarding tables that are not part of the source; None if there are
        none.
    :param report: receiver of problems and progress (see ``Report``); by default the first problem is raised.
    :param hosts: host names of the job: a service is asked only for the part of the fabric that joins them; other
        sources are read as a whole.
    :raises SourceError: if the source is invalid, with file, line and expected content; if a service does not answer
        (subclass ServiceError).
    :raises HostError: if a service does not know one of ``hosts``.
    """
    report = report or Report()
    with guarded(str(source), SourceError):
        if str(source) == automatic.AUTO:
            _refuse_labels(report, str(source))
            return _found(report, hosts)
        if Address.is_named_by(str(source)):
            _refuse_labels(report, str(source))
            return _ask(str(source), lfts, report, hosts)
        return _load(str(source), lfts, report)


def load_routes(
    source: str | os.PathLike[str], lfts: str | os.PathLike[str] | None = None, report: Report | None = None
) -> Routes:
    """The routes over the fabric of a source, which `load` reads.

    :param source: topology source.
    :param lfts: forwarding tables that are not part of the source.
    :param report: receiver of problems and progress.
    :raises SourceError: if the source is invalid, with file and line.
    """
    routes = load(source, lfts, report).routes
    assert routes is not None  # load() computes missing routes
    return routes


def _ask(source: str, lfts: str | os.PathLike[str] | None, report: Report, hosts: Sequence[str] | None) -> Discovery:
    if lfts is not None:
        raise SourceError(f"{source}: expecting no forwarding tables beside a service, which has its own, got {lfts}")
    discovery = service.read(source, hosts, report)
    if discovery.routes is None:
        raise ServiceError(f"{source}: field routes: expecting the service's routes, got none")
    check_routes(discovery.routes, report)
    return discovery


def _found(report: Report, hosts: Sequence[str] | None) -> Discovery:
    found = automatic.find(hosts, {}, os.environ, report)
    if found.discovery is None:
        raise SourceError(f"expecting a topology, got none: {found.words}")
    report.note(found.words)
    return found.discovery


def _load(source: str, lfts: str | os.PathLike[str] | None, report: Report) -> Discovery:
    discovery, found = _read_fabric(source, report)
    if lfts is not None:
        found = _tables_at(lfts)
    if found:
        report.step("forwarding tables")
        return replace(discovery, routes=tables.read(found, discovery, report))
    return with_routes(discovery, report)


def _read_fabric(source: str, report: Report) -> tuple[Discovery, list[InputFile]]:
    """Read the fabric of a source, and return the texts of the forwarding tables that it contains, not yet parsed."""
    if not Path(source).exists() and synthetic.recognise_spec(source):
        _refuse_labels(report, source)
        return Discovery(synthetic.from_spec(source)), []
    if not Path(source).exists() and names_function(source):
        _refuse_labels(report, source)
        return _called(source), []
    source, name = _named_topology(source)
    if not Path(source).exists():
        words = f"a synthetic fabric ({synthetic.SPEC_HELP}), a service (tcp://HOST:PORT) or a module:function"
        raise SourceError(f"{source}: expecting a file, a directory, {words}, got none")
    report.step(f"reading {source}")
    texts = open_inputs(source)
    formats = [(text, _format_of(text, alone=len(texts) == 1)) for text in texts]
    kinds = dict.fromkeys(kind for _, kind in formats if kind not in (None, tables))
    if len(kinds) > 1:
        kinds.pop(slurm_nodes, None)  # a folder with slurm.conf and topology.conf; nodes repeat what that says
    found = [text for text, kind in formats if kind is tables]
    if not kinds:
        hint = "; it holds forwarding tables: give them with --lfts, beside a fabric" if found else ""
        names = ", ".join(kind.NAME for kind in FORMATS)
        raise SourceError(f"{source}: expecting one of: {names}; got {kinds_of(texts)}{hint}")
    if len(kinds) > 1:
        some = ", ".join(kind.NAME for kind in kinds if kind is not None)
        raise SourceError(f"{source}: expecting one topology, got several: {some}")
    (kind,) = kinds
    assert kind is not None  # for the type checker
    read = [text for text, of in formats if of is kind]
    if kind is not clouds:
        _refuse_labels(report, kind.NAME)
    if name is None:
        return kind.read(read, report), found
    if kind not in (slurm_yaml, slurm_nodes):
        raise SourceError(f"{source}#{name}: expecting a name after # for {slurm_yaml.NAME}, got {kind.NAME}")
    return kind.read(read, report, name), found


def _refuse_labels(report: Report, got: str) -> None:
    if report.labels:
        raise SourceError(f"--labels: expecting nodes of Kubernetes with labels, got {got}")


def _named_topology(source: str) -> tuple[str, str | None]:
    """Split ``FILE#NAME``, one of several topologies in a file, into its parts; the name is None if there is none."""
    file, sign, name = source.rpartition("#")
    return (file, name) if sign and name and not Path(source).exists() and Path(file).exists() else (source, None)


def _called(source: str) -> Discovery:
    """Call a user's function ``module:function`` and return its fabric as a discovery."""
    made = result_of(source, SourceError)
    if not isinstance(made, Fabric | Discovery):
        raise SourceError(f"{source}: expecting a Fabric or a Discovery, got {type(made).__name__}")
    return Discovery(made) if isinstance(made, Fabric) else made


def _format_of(text: InputFile, alone: bool) -> ModuleType | None:
    """Find the module that reads a text; None if the text is no topology, for example another file of an archive.

    :param text: the text.
    :param alone: whether the source has only this text; if so, an error is raised if its first bytes are empty or
        binary.
    """
    try:
        head = text.head()
    except SourceError:
        if alone:
            raise
        return None
    return next((kind for kind in (*FORMATS, tables) if kind.recognise(head)), None)


def is_input(path: Path) -> bool:
    """Whether a file contains a topology or forwarding tables, packed or not; also true if it cannot be read."""
    try:
        return any(_format_of(text, alone=False) is not None for text in open_inputs(path))
    except TopompiError:
        return True


def _tables_at(lfts: str | os.PathLike[str]) -> list[InputFile]:
    texts = open_inputs(lfts)
    found = [text for text in texts if _format_of(text, alone=len(texts) == 1) is tables]
    if not found:
        raise SourceError(f"{lfts}: expecting {tables.NAME}, got {kinds_of(texts)}")
    return found
