"""The run of `ocf validate`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from ocf.cli.exit_status import FAILED, FOUND, SUCCESS
from ocf.cli.validation_output import ReportFormat, render
from ocf.objects.printable import printable

if TYPE_CHECKING:
    from ocf.autoscaling import FeatureGates
    from ocf.cli.manifest_files import Document
    from ocf.cli.validation_findings import Selection
    from ocf.cli.validation_report import ValidationReport
    from ocf.cli.validation_scope import Scope
    from ocf.objects import Manifest

__all__ = ["FailOn", "LowestSeverity", "Request", "run"]


class FailOn(StrEnum):
    """Problems for which the exit status is 1."""

    ERROR = "error"
    WARNING = "warning"


class LowestSeverity(StrEnum):
    """Lowest severity of the findings that are reported."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Request(NamedTuple):
    """The arguments and options of `ocf validate`.

    Args:
        files: Files, folders, or `-`.
        lint: Whether findings of the linter are reported.
        severity: Lowest severity that is reported.
        disable: Codes that are not reported.
        fail_on: Lowest severity for which the run fails.
        update_from: Files with the stored objects.
        kubernetes_version: Version whose feature gates apply; None for the newest whose rules are implemented.
        feature_gate: Feature gates, `NAME=BOOL`.
        output: Format of the reports.
    """

    files: Sequence[str]
    lint: bool = False
    severity: LowestSeverity = LowestSeverity.WARNING
    disable: Sequence[str] = ()
    fail_on: FailOn = FailOn.ERROR
    update_from: Sequence[str] = ()
    kubernetes_version: str | None = None
    feature_gate: Sequence[str] = ()
    output: ReportFormat = ReportFormat.TEXT


def run(request: Request) -> int:
    """Validate files, print the reports, and print the summary to the standard error.

    Args:
        request: The arguments and options.

    Returns:
        The exit status: `FAILED` if a file or folder cannot be read or is empty, else `FOUND` if an object is invalid
        or a finding makes the run fail.

    Raises:
        ConfigError: If an option has an invalid value.
    """
    from ocf.cli.manifest_files import read_documents
    from ocf.cli.validation_report import gates_of
    from ocf.cli.validation_scope import Scope

    gates = gates_of(request.kubernetes_version, request.feature_gate)
    selection = _selection(request)
    stored = dict(_stored(request.update_from))
    scope, failed = Scope(), False

    def reports() -> Iterator[ValidationReport]:
        nonlocal failed
        for report in _reports(read_documents(request.files), scope, gates, stored, selection):
            failed = failed or not report.valid or (selection is not None and selection.fails(report.findings))
            yield report

    for line in render(reports(), request.output):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    for line in scope.lines():
        sys.stderr.write(f"{printable(line)}\n")
    if scope.unread:
        return FAILED
    return FOUND if failed else SUCCESS


def _selection(request: Request) -> Selection | None:
    """Return which findings are reported; None without the linter."""
    if request.lint:
        from ocf.cli.validation_findings import select

        return select(request.severity, request.disable, request.fail_on)
    if request.disable or request.severity != LowestSeverity.WARNING or request.fail_on != FailOn.ERROR:
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
