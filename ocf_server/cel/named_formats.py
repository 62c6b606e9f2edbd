"""Named formats in CEL: checks of names, URIs and times.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-format-library.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from ocf.objects.name_validation import (
    dns_1035_label,
    dns_label,
    dns_label_prefix,
    dns_subdomain,
    dns_subdomain_prefix,
    label_value,
    qualified_name,
)
from ocf.objects.timestamps import parse_rfc3339
from ocf_server.cel.optional_values import Maybe
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import FORMAT
from ocf_server.cel.urls import uri_problem
from ocf_server.cel.values import Opaque

__all__ = ["FORMATS"]


@dataclass(frozen=True, slots=True)
class _Format(Opaque):
    """A format.

    Args:
        problems: Function that returns the problems of a text; empty if it has the format.
    """

    name: str
    problems: Callable[[str], list[str]] = field(compare=False)
    kind: str = field(default=FORMAT.name, init=False)

    def validate(self, text: str) -> Maybe:
        """Return the problems of a text, as an optional value."""
        problems = self.problems(text)
        return Maybe(problems) if problems else Maybe.none()


def _matching(pattern: str, problem: str) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern)
    return lambda text: [] if compiled.fullmatch(text) else [problem]


def _reading(read: Callable[[str], object], pattern: str, problem: str) -> Callable[[str], list[str]]:
    """Return the check of a text that a function reads without ValueError and that matches a pattern."""
    matching = _matching(pattern, problem)

    def problems(text: str) -> list[str]:
        try:
            read(text)
        except ValueError:
            return [problem]
        return matching(text)

    return problems


def _dns_1035_label_prefix(text: str) -> list[str]:
    # The API server replaces the last two characters of a prefix by one letter.
    return dns_1035_label(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


_CHECKS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "dns1123Label": dns_label,
    "dns1123Subdomain": dns_subdomain,
    "dns1035Label": dns_1035_label,
    "qualifiedName": qualified_name,
    "dns1123LabelPrefix": dns_label_prefix,
    "dns1123SubdomainPrefix": dns_subdomain_prefix,
    "dns1035LabelPrefix": _dns_1035_label_prefix,
    "labelValue": label_value,
    "uri": lambda text: [*filter(None, [uri_problem(text)])],
    "uuid": _matching(
        r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}",
        "does not match the UUID format",
    ),
    "byte": _matching(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)", "invalid base64"),
    "date": _reading(date.fromisoformat, r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "invalid date"),
    "datetime": _reading(lambda text: parse_rfc3339(text, lower_case=True), r".*", "invalid datetime"),
}
_NAMED: Final = {name: _Format(name, check) for name, check in _CHECKS.items()}


def _named(name: str) -> Maybe:
    return Maybe(_NAMED[name]) if name in _NAMED else Maybe.none()


FORMATS: Final[tuple[Function, ...]] = (
    *(overload(f"format.{name} -> format", lambda found=found: found) for name, found in _NAMED.items()),
    overload("format.named: string -> optional(format)", _named),
    overload("format on validate: string -> optional(list(string))", _Format.validate),
)
"""The functions of the library of named formats."""
