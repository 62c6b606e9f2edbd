"""`ocf validate`: validation of autoscalers in files, with the messages of the API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ocf.cli.options import FeatureGateFlags, Files, KubernetesVersion, Traceback
from ocf.cli.output import exit_on_error
from ocf.cli.validation_output import ReportFormat

if TYPE_CHECKING:
    from ocf.autoscaling import FeatureGates
    from ocf.cli.manifest_files import Document
    from ocf.cli.validation_findings import Selection
    from ocf.cli.validation_report import ValidationReport
    from ocf.cli.validation_scope import Scope
    from ocf.objects import Manifest

__all__ = ["FailOn", "LowestSeverity", "validate"]

_INVALID = 1


class FailOn(StrEnum):
    """Problems for which the exit status is 1."""

    ERROR = "error"
    WARNING = "warning"


class LowestSeverity(StrEnum):
    """Lowest severity of the findings that are reported."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def validate(  # noqa: PLR0913 (the options of the command)
    files: Files,
    *,
    lint: Annotated[
        bool, typer.Option("--lint", help="Also report settings that the server accepts and that cause problems.")
    ] = False,
    severity: Annotated[
        LowestSeverity, typer.Option(help="With --lint: lowest severity that is reported.")
    ] = LowestSeverity.WARNING,
    disable: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="With --lint: do not report this code; repeatable.")
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Lowest severity for which the exit status is 1; the server's errors always count.")
    ] = FailOn.ERROR,
    update_from: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Stored objects: validate as an update of these.")
    ] = None,
    kubernetes_version: KubernetesVersion = None,
    feature_gate: FeatureGateFlags = None,
    output: Annotated[
        ReportFormat, typer.Option(help="Output format; github prints annotations for a workflow.")
    ] = ReportFormat.TEXT,
    traceback: Traceback = False,
) -> None:
    """Validate HorizontalPodAutoscalers like the API server, without a server.

    The exit status is 1 if the server would reject any object, or if --lint has found an error. Objects of other kinds,
    templates and other YAML are passed over; a summary counts them.
    """
    with exit_on_error(traceback=traceback):
        from ocf.cli.manifest_files import read_documents
        from ocf.cli.validation_output import render
        from ocf.cli.validation_report import gates_of
        from ocf.cli.validation_scope import Scope

        gates = gates_of(kubernetes_version, feature_gate or [])
        selection = _selection(severity, disable or [], fail_on, lint=lint)
        stored = dict(_stored(update_from or []))
        scope, failed = Scope(), False

        def reports() -> Iterator[ValidationReport]:
            nonlocal failed
            for report in _reports(read_documents(files), scope, gates, stored, selection):
                failed = failed or not report.valid or (selection is not None and selection.fails(report.findings))
                yield report

        for line in render(reports(), output):
            typer.echo(line)
        for line in scope.lines():
            typer.echo(line, err=True)
        if failed:
            raise typer.Exit(_INVALID)


def _selection(severity: str, disabled: Sequence[str], fail_on: str, *, lint: bool) -> Selection | None:
    """Return which findings are reported; None without the linter."""
    if lint:
        from ocf.cli.validation_findings import select

        return select(severity, disabled, fail_on)
    if disabled or severity != LowestSeverity.WARNING or fail_on != FailOn.ERROR:
        from ocf.errors import ConfigError

        raise ConfigError("--severity, --disable and --fail-on are about findings: add --lint")
    return None


def _stored(files: Sequence[str]) -> Iterator[tuple[str, Manifest]]:
    from ocf.cli.manifest_files import read_documents
    from ocf.cli.validation_report import KIND, name_of
    from ocf.errors import ConfigError

    for document in read_documents(files):
        if document.manifest is None:
            raise ConfigError(f"{document.file}: document {document.number}: {document.problem}")
        if document.manifest.get("kind") == KIND:
            yield name_of(document.manifest), document.manifest


def _reports(
    documents: Iterable[Document],
    scope: Scope,
    gates: FeatureGates,
    stored: dict[str, Manifest],
    selection: Selection | None,
) -> Iterator[ValidationReport]:
    from ocf.cli.validation_report import check, find_by_name

    neighbours = None
    if selection is not None:
        from ocf.cli.validation_neighbours import Neighbours

        documents = list(documents)
        neighbours = Neighbours(documents)
    for document in filter(scope.covers, documents):
        old = find_by_name(document.manifest, stored) if document.manifest is not None else None
        others = None if neighbours is None else neighbours.of(document)
        report = check(document, gates=gates, old=old, others=others)
        if scope.counts(report):
            yield report if selection is None else selection.apply(report)
