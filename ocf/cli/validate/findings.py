"""Findings of the linter that `ocf validate` reports: by severity, by code, and without those that a file ignores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ocf.autoscaling.linter.findings import Code, Severity
from ocf.errors import ConfigError
from ocf.objects.suggestions import nearest

if TYPE_CHECKING:
    from ocf.autoscaling import Finding
    from ocf.cli.validate.report import ValidationReport

__all__ = ["Selection", "ignored_codes", "select"]

_COMMENT: Final = re.compile(r"(?:^|\s)#\s*ocf:\s*ignore\s+([\w-]+(?:\s*,\s*[\w-]+)*)", re.MULTILINE)
_RANKS: Final = {severity: rank for rank, severity in enumerate((Severity.ERROR, Severity.WARNING, Severity.INFO))}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which findings are reported, and for which the command fails.

    Args:
        one_cluster: Whether all files are of one cluster.
    """

    lowest: Severity
    disabled: frozenset[str]
    fail_on: Severity
    one_cluster: bool = False

    def apply(self, report: ValidationReport) -> ValidationReport:
        """Return a report with the selected findings only."""
        if not report.findings:
            return report
        left_out = self.disabled | ignored_codes(report.document.text)
        kept = (each for each in report.findings if _RANKS[each.severity] <= _RANKS[self.lowest])
        return report._replace(findings=tuple(each for each in kept if each.code.value not in left_out))

    def fails(self, findings: Iterable[Finding]) -> bool:
        """Return whether the command fails because of one of the findings."""
        return any(_RANKS[each.severity] <= _RANKS[self.fail_on] for each in findings)


def select(lowest: str, disabled: Sequence[str], fail_on: str, *, one_cluster: bool = False) -> Selection:
    """Return the selection that the options of the command name.

    Args:
        fail_on: Lowest severity for which the command fails; one that is not reported is reported, too.
    """
    codes = [code.value for code in Code]
    for each in disabled:
        if each not in codes:
            near = nearest(each, codes)
            hint = f'did you mean "{near}"? The' if near else "the"
            raise ConfigError(f'invalid code "{each}": {hint} codes are: {", ".join(codes)}')
    limit = Severity(fail_on)
    return Selection(max(Severity(lowest), limit, key=_RANKS.__getitem__), frozenset(disabled), limit, one_cluster)


def ignored_codes(text: str) -> frozenset[str]:
    """Return the codes that the comments of a document ignore.

    Example:
        >>> sorted(ignored_codes("spec: # ocf: ignore slow-drain, never-down  the load falls slowly"))
        ['never-down', 'slow-drain']
    """
    named = (code for listed in _COMMENT.findall(text) for code in listed.split(","))
    return frozenset(code.strip() for code in named)
