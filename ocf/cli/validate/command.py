"""`ocf validate`: validation of autoscalers in files, with the messages of the API server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.exit_status import FAILED, FOUND
from ocf.cli.options import feature_gate_option, files_argument, kubernetes_version_option, traceback_option
from ocf.cli.validate.output import ReportFormat, render
from ocf.objects.printable import printable

if TYPE_CHECKING:
    from ocf.autoscaling import FeatureGates
    from ocf.cli.manifest_files import Document
    from ocf.cli.validate.findings import Selection
    from ocf.cli.validate.report import ValidationReport
    from ocf.cli.validate.scope import ValidationScope
    from ocf.objects import Manifest

__all__ = ["FailOn", "LowestSeverity", "validate"]


class FailOn(StrEnum):
    """Problems for which the exit status is 1."""

    ERROR = "error"
    WARNING = "warning"


class LowestSeverity(StrEnum):
    """Lowest severity of the findings that are reported."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@click.command(cls=Command)
@files_argument
@click.option("--lint", is_flag=True, help="Also report settings that the server accepts and that cause problems.")
@click.option(
    "--severity",
    type=OneOf(LowestSeverity),
    default=LowestSeverity.WARNING,
    help="With --lint: lowest severity that is reported.",
)
@click.option("--disable", multiple=True, metavar="CODE", help="With --lint: do not report this code; repeatable.")
@click.option(
    "--fail-on",
    type=OneOf(FailOn),
    default=FailOn.ERROR,
    help="Lowest severity for which the exit status is 1; the server's errors always count.",
)
@click.option("--fix", is_flag=True, help="First edit the files: write HPAs of a beta as autoscaling/v2.")
@click.option(
    "--one-cluster",
    is_flag=True,
    help="With --lint: all files are of one cluster, also folders that have the same objects or no namespaces.",
)
@click.option("--update-from", multiple=True, metavar="FILE", help="Stored objects: validate as an update of these.")
@kubernetes_version_option
@feature_gate_option
@click.option(
    "--output",
    type=OneOf(ReportFormat),
    default=ReportFormat.TEXT,
    help="Output format; github prints annotations for a workflow.",
)
@traceback_option
def validate(  # noqa: PLR0913 (each is an option of the command line)
    files: tuple[str, ...],
    *,
    lint: bool,
    severity: LowestSeverity,
    disable: tuple[str, ...],
    fail_on: FailOn,
    fix: bool,
    one_cluster: bool,
    update_from: tuple[str, ...],
    kubernetes_version: str | None,
    feature_gate: tuple[str, ...],
    output: ReportFormat,
) -> None:
    """Validate HorizontalPodAutoscalers like the API server, without a server.

    Objects of other kinds, templates and other YAML are passed over; a summary counts them. A file that cannot be read
    does not prevent the validation of the others.

    Example:
        ocf validate --lint web.yaml
    """
    from ocf.cli.manifest_files import read_documents
    from ocf.cli.validate.report import gates_of
    from ocf.cli.validate.scope import ValidationScope

    gates = gates_of(kubernetes_version, feature_gate)
    selection = _selection(severity, disable, fail_on, lint=lint, one_cluster=one_cluster)
    stored = dict(_stored(update_from))
    scope, failed = ValidationScope(), False
    if fix:
        from ocf.cli.validate.fixes import fix_files

        for fixed in fix_files(files):
            sys.stderr.write(f"fix: {printable(fixed.text)}\n")
            failed = failed or not fixed.done

    def reports() -> Iterator[ValidationReport]:
        nonlocal failed
        for report in _reports(_once(read_documents(files)), scope, gates, stored, selection):
            failed = failed or not report.valid or (selection is not None and selection.fails(report.findings))
            yield report

    for line in render(reports(), output, color=_has_colors()):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    for line in scope.lines():
        sys.stderr.write(f"{printable(line)}\n")
    if scope.unread:
        raise Exit(FAILED)
    if failed:
        raise Exit(FOUND)


def _has_colors() -> bool:
    if not sys.stdout.isatty():
        return False
    from ocf.cli.output import has_colors

    return has_colors()


def _once(documents: Iterable[Document]) -> Iterator[Document]:
    """Leave out the documents of files that are given a second time."""
    seen = set()
    for document in documents:
        of_file = document.number, document.line, document.path, document.problem
        place = (os.path.normpath(document.file), *of_file)
        if place not in seen:
            seen.add(place)
            yield document


def _selection(
    severity: LowestSeverity, disable: Sequence[str], fail_on: FailOn, *, lint: bool, one_cluster: bool
) -> Selection | None:
    """Return which findings are reported; None without the linter."""
    if lint:
        from ocf.cli.validate.findings import select

        return select(severity, disable, fail_on, one_cluster=one_cluster)
    if disable or severity != LowestSeverity.WARNING or fail_on != FailOn.ERROR or one_cluster:
        from ocf.errors import ConfigError

        raise ConfigError("--severity, --disable, --fail-on and --one-cluster are about findings: add --lint")
    return None


def _stored(files: Sequence[str]) -> Iterator[tuple[str, Manifest]]:
    from ocf.cli.manifest_files import read_documents
    from ocf.cli.validate.report import KIND, name_of
    from ocf.errors import ConfigError

    for document in read_documents(files):
        if document.manifest is None:
            raise ConfigError(f"{document.place}: {document.problem}")
        if document.manifest.get("kind") == KIND:
            yield name_of(document.manifest), document.manifest


def _reports(
    documents: Iterable[Document],
    scope: ValidationScope,
    gates: FeatureGates,
    stored: dict[str, Manifest],
    selection: Selection | None,
) -> Iterator[ValidationReport]:
    from ocf.cli.validate.report import check, check_scaled_object, find_by_name

    neighbours = None
    if selection is not None:
        from ocf.cli.validate.neighbours import Neighbours

        documents = list(documents)
        neighbours = Neighbours(documents, one_cluster=selection.one_cluster)
    for document in scope.select(documents):
        old = find_by_name(document.manifest, stored) if document.manifest is not None else None
        others = None if neighbours is None else neighbours.of(document)
        report = check(document, gates=gates, old=old, others=others)
        if scope.counts(report):
            yield report if selection is None else selection.apply(report)
    if selection is not None and neighbours is not None:
        from ocf.autoscaling.linter.findings import Code
        from ocf.cli.validate.scope import excuse

        for document in filter(_is_scaled_object, documents):
            report = selection.apply(check_scaled_object(document, neighbours.of(document), gates))
            if excuse(document) is not None:
                # The errors of a template are those of its placeholders.
                kept = (each for each in report.findings if each.code is not Code.REJECTED_HPA)
                report = report._replace(findings=tuple(kept))
            if report.findings:
                yield report


def _is_scaled_object(document: Document) -> bool:
    from ocf.autoscaling.targets.scaled_objects import is_scaled_object

    return document.manifest is not None and is_scaled_object(document.manifest)
