"""`ocf validate`: validation of autoscalers in files, with the messages of the API server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ocf.cli.options import FeatureGateFlags, Files, KubernetesVersion, Traceback
from ocf.cli.output import exit_on_error

if TYPE_CHECKING:
    from ocf.autoscaling import FeatureGates
    from ocf.cli.manifest_files import Document
    from ocf.cli.validation_report import ValidationReport
    from ocf.objects import Manifest

__all__ = ["ReportFormat", "only_autoscalers", "report_lines", "validate"]

_INVALID = 1


class ReportFormat(StrEnum):
    """Output formats of the reports."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def validate(
    files: Files,
    *,
    lint: Annotated[
        bool, typer.Option("--lint", help="Also report settings that the server accepts and that cause problems.")
    ] = False,
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

    The exit status is 1 if the server would reject any object. Objects of other kinds are ignored.
    """
    with exit_on_error(traceback=traceback):
        from ocf.cli.manifest_files import read_documents
        from ocf.cli.validation_report import gates_of

        gates = gates_of(kubernetes_version, feature_gate or [])
        stored = dict(_stored(update_from or []))
        documents = read_documents(files)
        others: list[Manifest] | None = None
        if lint:
            known = list(documents)
            documents, others = iter(known), [one.manifest for one in known if one.manifest is not None]
        reports = _reports(documents, gates, stored, others)
        if not _show(reports, output):
            raise typer.Exit(_INVALID)


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
    documents: Iterable[Document], gates: FeatureGates, stored: dict[str, Manifest], others: Sequence[Manifest] | None
) -> Iterator[ValidationReport]:
    from ocf.cli.validation_report import check, find_by_name

    for document in only_autoscalers(documents):
        old = find_by_name(document.manifest, stored) if document.manifest is not None else None
        yield check(document, gates=gates, old=old, others=others)


def only_autoscalers(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield autoscalers and unreadable documents; print a note about objects of other kinds at the end.

    Args:
        documents: The documents.
    """
    from ocf.cli.validation_report import KIND

    ignored: dict[str, list[str]] = {}
    for document in documents:
        if document.manifest is None or document.manifest.get("kind") == KIND:
            yield document
        else:
            kinds = ignored.setdefault(document.file, [])
            kinds.append(str(document.manifest.get("kind") or "none"))
    for file, kinds in ignored.items():
        note = f"{file}: ignored {len(kinds)} objects of other kinds ({', '.join(dict.fromkeys(kinds))})"
        typer.secho(f"note: {note}", fg=typer.colors.YELLOW, err=True)


def _show(reports: Iterator[ValidationReport], output: ReportFormat) -> bool:
    """Print the reports, and return whether all objects are valid."""
    valid = True
    if output is ReportFormat.JSON:
        found = [report.to_json() for report in reports]
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return all(one["valid"] for one in found)
    lines = _annotations if output is ReportFormat.GITHUB else report_lines
    for report in reports:
        valid = valid and report.valid
        for line in lines(report):
            typer.echo(line)
    return valid


def report_lines(report: ValidationReport) -> Iterator[str]:
    """Render a report as lines.

    Args:
        report: The report.

    Yields:
        One line per error or finding.
    """
    document = report.document
    location = f"{document.file}: {report.name}"
    if document.manifest is None:
        location = f"{document.file}: document {document.number}" if document.number else document.file
    for error in report.errors:
        yield f"{location}: {error}"
    for finding in report.findings:
        yield f"{location}: {finding.severity}: {finding.path}: {finding.explanation} {finding.fix} [{finding.code}]"


def _annotations(report: ValidationReport) -> Iterator[str]:
    for error in report.errors:
        yield _annotation("error", report, str(error))
    levels = {"error": "error", "warning": "warning", "info": "notice"}
    for finding in report.findings:
        text = f"{finding.path}: {finding.explanation} {finding.fix} [{finding.code}]"
        yield _annotation(levels[str(finding.severity)], report, text)


def _annotation(level: str, report: ValidationReport, text: str) -> str:
    document = report.document
    title = f"HorizontalPodAutoscaler {report.name}" if document.manifest is not None else "unreadable"
    location = f"file={_property(document.file)},line={document.line},title={_property(title)}"
    return f"::{level} {location}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
