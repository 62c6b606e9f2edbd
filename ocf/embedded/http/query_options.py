"""Options in the query of a request.

Unknown options are ignored, as by a real API server; invalid values of known options are rejected.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.cluster.protocol import Preconditions, Propagation
from ocf.embedded.api.status_errors import bad_request
from ocf.embedded.api.write_options import FieldValidation, require_manager
from ocf.embedded.http.status import bad_option
from ocf.errors import FieldProblem, InvalidError, StatusCause

__all__ = ["DeleteQuery", "ListQuery", "WriteQuery", "is_set"]

_PROPAGATIONS: Final = ("Foreground", "Background", "Orphan", "nil")

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


def is_set(query: Mapping[str, str], name: str) -> bool:
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


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _DIGITS or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
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
    def read(cls, query: Mapping[str, str]) -> "ListQuery":
        """Read the options from a query.

        Raises:
            ApiError: If an option has an invalid value, or two options contradict each other.
        """
        options = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            limit=max(0, _integer(query, "limit")),
            continue_token=query.get("continue", ""),
            resource_version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            watch=is_set(query, "watch"),
            bookmarks=is_set(query, "allowWatchBookmarks"),
            initial=is_set(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
            timeout=max(0, _integer(query, "timeoutSeconds")),
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
        if not self.watch and self.match not in _MATCHES:
            raise bad_option("ListOptions", _MATCH, f'"{self.match}"', _MATCHES)
        problems = [FieldProblem(name, detail) for name, detail in self._contradictions()]
        if problems:
            raise _invalid_options("ListOptions", problems)
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
        elif self.match == _EXACT and self.resource_version == "0":
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


def _invalid_options(kind: str, problems: list[FieldProblem]) -> InvalidError:
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
    def read(cls, query: Mapping[str, str], kind: str) -> "WriteQuery":
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
            dry_run=_dry_run(query, kind),
            force=is_set(query, "force") if "force" in query else None,
            validation=FieldValidation(validation or FieldValidation.WARN),
        )


def _dry_run(query: Mapping[str, str], kind: str) -> bool:
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise bad_option(kind, "dryRun", f'["{value}"]', ("All",))
    return value == "All"


@dataclass(frozen=True, slots=True)
class DeleteQuery:
    """The options of a delete, in its body or in its query.

    Args:
        preconditions: Conditions that the stored object must meet.
        propagation: Handling of its dependents.
        grace_period_seconds: Grace period of a pod; None for that of the pod.
        dry_run: Only check whether the delete would succeed.
    """

    preconditions: Preconditions | None = None
    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], body: Mapping[str, Any]) -> "DeleteQuery":
        """Read the options from a query and a body; the body takes precedence.

        Raises:
            ApiError: If an option has an invalid value.
        """
        kind = "DeleteOptions"
        grace = body.get("gracePeriodSeconds")
        if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
            shape = "string" if isinstance(grace, str) else "value"
            raise bad_request(
                f"json: cannot unmarshal {shape} into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
            )
        dry_run = body.get("dryRun")
        if dry_run not in (None, [], ["All"]):
            raise bad_option(kind, "dryRun", str(dry_run).replace("'", '"'), ("All",))
        return cls(
            preconditions=_preconditions(body.get("preconditions")),
            propagation=_propagation(query, body),
            grace_period_seconds=_seconds(query) if grace is None else grace,
            dry_run=bool(dry_run) or _dry_run(query, kind),
        )


def _preconditions(given: Any) -> Preconditions | None:
    if not isinstance(given, Mapping):
        return None
    uid, version = given.get("uid"), given.get("resourceVersion")
    return Preconditions(uid=uid or None, resource_version=version or None)


def _seconds(query: Mapping[str, str]) -> int | None:
    text = query.get("gracePeriodSeconds", "")
    return int(text) if text.isdecimal() else None


def _propagation(query: Mapping[str, str], body: Mapping[str, Any]) -> Propagation | None:
    given = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents")
    if given and orphan is not None:
        detail = f'Invalid value: "{given}": orphanDependents and deletionPropagation cannot be both set'
        raise _invalid_options("DeleteOptions", [FieldProblem("propagationPolicy", detail)])
    if not given:
        return None if orphan is None else Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    if given not in list(Propagation):
        raise bad_option("DeleteOptions", "propagationPolicy", f'"{given}"', _PROPAGATIONS)
    return Propagation(given)
