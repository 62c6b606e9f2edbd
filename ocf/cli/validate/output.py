"""Output formats of validation reports: text, JSON, annotations of GitHub workflows, and SARIF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from click import style

from ocf.cli.manifest_files import STDIN
from ocf.objects.printable import printable, printable_json

if TYPE_CHECKING:
    from ocf.cli.validate.places import Place
    from ocf.cli.validate.report import ValidationReport

__all__ = ["ReportFormat", "render", "report_lines"]


class ReportFormat(StrEnum):
    """Output formats of the reports."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


class _Problem(NamedTuple):
    """An error of the server, or a finding of the linter."""

    found: bool
    code: str
    severity: str
    text: str
    place: Place


_COLORS: Final = {"error": "red", "warning": "yellow", "info": "cyan"}
_GITHUB_LEVELS: Final = {"error": "error", "warning": "warning", "info": "notice"}
_SARIF_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(reports: Iterable[ValidationReport], output: ReportFormat, *, color: bool = False) -> Iterator[str]:
    """Render reports.

    Args:
        reports: The reports; the line formats render each one as soon as it is there.
        color: Whether severities have colors, in text.
    """
    if output in {ReportFormat.JSON, ReportFormat.SARIF}:
        import json

        whole = _sarif(reports) if output is ReportFormat.SARIF else [report.to_json() for report in reports]
        yield printable_json(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            yield from _annotations(report) if output is ReportFormat.GITHUB else report_lines(report, color=color)


def report_lines(report: ValidationReport, *, color: bool = False) -> Iterator[str]:
    """Render a report as lines."""
    for problem in _problems(report):
        place = printable(f"{_location(report, problem.place)}: ")
        # What the server would reject has no word for its severity, so its text has the color.
        severity, text = (f"{problem.severity}: ", _coded(problem)) if problem.found else (_coded(problem), "")
        level = printable(severity)
        yield f"{place}{style(level, fg=_COLORS[problem.severity]) if color else level}{printable(text)}"


def _problems(report: ValidationReport) -> Iterator[_Problem]:
    for error in report.errors:
        yield _Problem(found=False, code=error.type, severity="error", text=str(error), place=report.place(error.path))
    for finding in report.findings:
        yield _Problem(
            found=True,
            code=finding.code.value,
            severity=finding.severity.value,
            text=f"{finding.path}: {finding.explanation} {finding.fix}",
            place=report.place(finding.path),
        )


def _coded(problem: _Problem) -> str:
    """Return the text of a problem, and the code of a finding, with which it can be ignored."""
    return f"{problem.text} [{problem.code}]" if problem.found else problem.text


def _location(report: ValidationReport, place: Place) -> str:
    document = report.document
    if not document.number:
        return document.file
    name = report.name if document.manifest is not None else f"document {document.number}"
    return f"{document.file}:{place.line}:{place.column}: {name}"


def _annotations(report: ValidationReport) -> Iterator[str]:
    document = report.document
    title = "unreadable" if document.manifest is None else f"{document.manifest.get('kind')} {report.name}"
    for problem in _problems(report):
        properties = {"title": title}
        if document.file != STDIN:
            place = {"line": str(problem.place.line), "col": str(problem.place.column)} if document.number else {}
            properties = {"file": _repository_path(document.file), **place, **properties}
        listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        yield f"::{_GITHUB_LEVELS[problem.severity]} {listed}::{_data(_coded(problem))}"


def _repository_path(file: str) -> str:
    """Return the path of a file in the repository that the workflow has checked out.

    The runner takes a relative path as one of the repository, also in a step with another working directory. Source:
    https://github.com/actions/runner/blob/main/src/Runner.Worker/ActionCommandManager.cs, `IssueCommandExtension`.
    """
    import os

    workspace = os.environ.get("GITHUB_WORKSPACE") or os.curdir
    path = os.path.relpath(os.path.realpath(file), os.path.realpath(workspace))
    return os.path.normpath(file) if path.startswith(os.pardir) else path.replace(os.sep, "/")


def _data(text: str) -> str:
    # Line ends, which the runner wants as %0D and %0A, are escapes already, as in the other formats.
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(reports: Iterable[ValidationReport]) -> dict[str, Any]:
    """Return a log of SARIF 2.1.0; columns count characters."""
    from ocf import __version__

    found = [(report, problem) for report in reports for problem in _problems(report)]
    rules = sorted({problem.code for _, problem in found})
    driver = {"name": "ocf validate", "version": __version__, "rules": [{"id": code} for code in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(report, problem, rules.index(problem.code)) for report, problem in found],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(report: ValidationReport, problem: _Problem, rule: int) -> dict[str, Any]:
    from urllib.parse import quote

    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(report.document.file)}}
    if report.document.number:
        physical["region"] = {"startLine": problem.place.line, "startColumn": problem.place.column}
    named = [] if report.document.manifest is None else [{"name": report.name, "kind": "object"}]
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[problem.severity],
        "message": {"text": f"{report.name}: {problem.text}" if named else problem.text},
        "locations": [{"physicalLocation": physical, **({"logicalLocations": named} if named else {})}],
    }
