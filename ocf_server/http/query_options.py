"""Options in the query of a request.

Unknown options are ignored, as by a real API server; invalid values of known options are rejected.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from multidict import MultiMapping

from ocf.errors import FieldProblem, InvalidError, StatusCause
from ocf.objects.go_strings import go_quoted
from ocf_server.api.status_errors import bad_request
from ocf_server.api.write_options import FieldValidation, require_manager
from ocf_server.http.status import bad_option

__all__ = ["ListQuery", "Query", "WriteQuery", "integer", "invalid_options", "is_set", "read_dry_run", "values"]

Query: TypeAlias = Mapping[str, str]
"""The options; one that occurs several times has its first value, unless it is a `MultiMapping`."""

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


def is_set(query: Query, name: str) -> bool:
    """Return whether a boolean option of a query is true.

    Only the absence of the option and the values `0` and `false`, in any case, are false: the conversion of a query
    parameter to a bool in `k8s.io/apimachinery/pkg/runtime`.

    Args:
        query: The query.
        name: The name of the option.

    Example:
        >>> is_set({"watch": "True"}, "watch"), is_set({"watch": ""}, "watch"), is_set({"watch": "False"}, "watch")
        (True, True, False)
    """
    return name in query and query[name] != "0" and query[name].lower() != "false"


def values(query: Query, name: str) -> list[str]:
    """Return all values of an option, in order.

    Args:
        query: The query.
        name: The name of the option.
    """
    if isinstance(query, MultiMapping):
        return query.getall(name, [])
    return [query[name]] if name in query else []


def integer(query: Query, name: str) -> int:
    """Return the value of an option that is an integer; 0 without the option.

    Args:
        query: The query.
        name: The name of the option.

    Raises:
        BadRequestError: If the value is not an integer of 64 bits.
    """
    text = query.get(name, "0")
    if not _INTEGER.fullmatch(text):
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: invalid syntax")
    if len(text) > _DIGITS or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f"strconv.ParseInt: parsing {go_quoted(text)}: value out of range")
    return int(text)


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
# More digits than this are rejected unread, as int() does from 4300 on with an error of its own.
_DIGITS: Final = 100


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The options of a list or a watch.

    Args:
        label_selector: Selects objects by labels.
        field_selector: Selects objects by fields.
        limit: Maximum number of objects; 0 for all.
        continue_token: Continues a paged list.
        resource_version: Version at which a watch starts, or the minimum version of a list.
        match: Interpretation of `resource_version` (`resourceVersionMatch`).
        watch: Whether the request is a watch.
        bookmarks: Whether a watch reports bookmarks.
        initial: Whether a watch starts with the existing objects and marks their end with a bookmark
            (`sendInitialEvents`); None if this follows from `resource_version`.
        timeout: Seconds after which a watch ends; 0 for never.
    """

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None
    timeout: int = 0

    @classmethod
    def read(cls, query: Query) -> "ListQuery":
        """Read the options from a query.

        Raises:
            ApiError: If an option has an invalid value, or two options contradict each other.
        """
        options = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            limit=max(0, integer(query, "limit")),
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            watch=is_set(query, "watch"),
            bookmarks=is_set(query, "allowWatchBookmarks"),
            initial=is_set(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
            timeout=max(0, integer(query, "timeoutSeconds")),
        )
        options._require_consistent()
        return options

    @property
    def is_exact(self) -> bool:
        """Whether a list has to be answered at its `resource_version`, and not at a newer one.

        A page is, also without `resourceVersionMatch`; see
        https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list.
        """
        paged = not self.match and self.limit > 0 and self.resource_version not in _ANY_VERSION
        return self.match == _EXACT or paged

    def _require_consistent(self) -> None:
        problems = [FieldProblem(name, detail) for name, detail in self._contradictions()]
        if problems:
            raise invalid_options("ListOptions", problems)
        if self.continue_token and self.resource_version not in _ANY_VERSION:
            raise bad_request("specifying resource version is not allowed when using continue")

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        if not self.watch:
            yield from self._contradictions_of_list()
        elif self.initial is None and self.match:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            if self.match != _NOT_OLDER:
                yield _MATCH, f'Unsupported value: "{self.match}": supported values: "{_NOT_OLDER}"'
        elif self.initial is not None and self.match != _NOT_OLDER:
            yield _MATCH, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"

    def _contradictions_of_list(self) -> Iterator[tuple[str, str]]:
        if self.initial is not None:
            yield "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"
        if self.match and not self.resource_version:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        if self.match and self.continue_token:
            yield _MATCH, "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        if self.match not in _MATCHES:
            supported = ", ".join(f'"{each}"' for each in _MATCHES)
            yield _MATCH, f'Unsupported value: "{self.match}": supported values: {supported}'
        if self.match == _EXACT and self.resource_version == "0":
            yield _MATCH, 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'


_MATCH: Final = "resourceVersionMatch"
_NOT_OLDER: Final = "NotOlderThan"
_ANY_VERSION: Final = ("", "0")
_EXACT: Final = "Exact"
_MATCHES: Final = (_EXACT, _NOT_OLDER, "")
_REASONS: Final = {
    "Forbidden": "FieldValueForbidden",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
}


def invalid_options(kind: str, problems: list[FieldProblem]) -> InvalidError:
    """Return the error for options with invalid values.

    Args:
        kind: The kind of the options, for example `DeleteOptions`.
        problems: The problems, by option.
    """
    causes = [StatusCause(_REASONS[one.detail.partition(":")[0]], one.detail, one.path) for one in problems]
    text = str(problems[0]) if len(problems) == 1 else f"[{', '.join(map(str, problems))}]"
    return InvalidError(f'{kind}.meta.k8s.io "" is invalid: {text}', code=422, reason="Invalid", causes=causes)


@dataclass(frozen=True, slots=True)
class WriteQuery:
    """The options of a create, an update or a patch.

    Args:
        field_manager: The field manager; empty if the request does not set one.
        dry_run: Return the object that would be stored, without storing it.
        force: Take over fields of other managers; None if the request does not set it.
        validation: Handling of undeclared fields.
    """

    field_manager: str = ""
    dry_run: bool = False
    force: bool | None = None
    validation: FieldValidation = FieldValidation.WARN

    @classmethod
    def read(cls, query: Query, kind: str) -> "WriteQuery":
        """Read the options from a query.

        Args:
            query: The query.
            kind: The kind of the options, for messages: `CreateOptions`, `UpdateOptions`, `PatchOptions`.

        Raises:
            InvalidError: If an option has an invalid value.
        """
        validation = query.get("fieldValidation", "")
        if validation not in _VALIDATIONS:
            raise bad_option(kind, "fieldValidation", f'"{validation}"', _VALIDATIONS)
        manager = query.get("fieldManager", "")
        require_manager(manager, kind)
        return cls(
            field_manager=manager,
            dry_run=read_dry_run(values(query, "dryRun"), kind),
            force=is_set(query, "force") if "force" in query else None,
            validation=FieldValidation(validation or FieldValidation.WARN),
        )


def read_dry_run(given: list[str], kind: str) -> bool:
    """Return whether a request is a dry run.

    Args:
        given: The values of the option `dryRun`.
        kind: The kind of the options, for messages.

    Raises:
        InvalidError: If a value is not `All`.
    """
    if any(value != "All" for value in given):
        raise bad_option(kind, "dryRun", json.dumps(given, separators=(",", ":")), ("All",))
    return bool(given)
