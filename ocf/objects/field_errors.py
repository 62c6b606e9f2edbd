r"""Field errors in the form of the API server.

An error appears in two forms: as a cause of the rejected request (field, reason, text) and as a line of its message.
Both print the invalid value like Go, which prints a string as a Go literal if its type is `string`, and as JSON if its
type has another name. The two differ only in control characters, `<`, `>` and `&`. The texts are exactly those of the
API server, so that a search in logs finds them.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from ocf.errors import StatusCause
from ocf.objects.go_strings import go_quoted

__all__ = [
    "OMITTED",
    "ErrorType",
    "FieldError",
    "duplicate",
    "forbidden",
    "internal",
    "invalid",
    "invalid_message",
    "not_found",
    "not_supported",
    "required",
    "too_long",
    "too_many",
]


class ErrorType(StrEnum):
    """Type of a field error: the `reason` of the cause in the response of the API server."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    DUPLICATE = "FieldValueDuplicate"
    INTERNAL = "InternalError"
    TOO_MANY = "FieldValueTooMany"
    NOT_FOUND = "FieldValueNotFound"

    @property
    def words(self) -> str:
        """The text that the message starts with."""
        return _WORDS[self]


_WORDS: Final = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.INTERNAL: "Internal error",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.NOT_FOUND: "Not found",
}
_SHOWING_THE_VALUE: Final = frozenset(
    {ErrorType.INVALID, ErrorType.NOT_SUPPORTED, ErrorType.DUPLICATE, ErrorType.TOO_MANY, ErrorType.NOT_FOUND}
)


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""The value of an error whose message leaves the value out."""


class FieldError(NamedTuple):
    """One field error with the message of the API server.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/.

    Args:
        path: The field in the spelling of the API server, `spec.metrics[0].type`.
        type: Type of the error.
        value: The value seen, as JSON; None if messages of the type never show it, `OMITTED` if this one does not.
        detail: The problem, or the allowed values.
        as_json: Whether the API server prints a string as JSON instead of as a Go literal.

    Example:
        >>> error = FieldError("spec.maxReplicas", ErrorType.INVALID, -1, "must be greater than or equal to 1")
        >>> error.message
        'Invalid value: -1: must be greater than or equal to 1'
        >>> str(error)
        'spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1'
    """

    path: str
    type: ErrorType
    value: Any = None
    detail: str = ""
    as_json: bool = False

    def __hash__(self) -> int:
        # The value may be a map or a list.
        return hash((self.path, self.type, self.detail))

    @property
    def message(self) -> str:
        """The text of the cause, without the field."""
        shows_value = self.type in _SHOWING_THE_VALUE and self.value is not OMITTED
        shown = f"{self.type.words}: {self._shown()}" if shows_value else self.type.words
        return f"{shown}: {self.detail}" if self.detail else shown

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def to_cause(self) -> StatusCause:
        """Return the error as a cause of a Status."""
        return StatusCause(self.type.value, self.message, self.path)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON: `path`, `type`, `value`, `detail` and `message`."""
        return {
            "path": self.path,
            "type": self.type.value,
            "value": None if self.value is OMITTED else self.value,
            "detail": self.detail,
            "message": self.message,
        }

    def _shown(self) -> str:
        if isinstance(self.value, str) and not self.as_json:
            return go_quoted(self.value)
        return _go_json(self.value)


def required(path: str, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(path, ErrorType.REQUIRED, None, detail)


def invalid(path: str, value: Any, detail: str, *, as_json: bool = False) -> FieldError:
    """Return the error of a value that is malformed or out of bounds."""
    return FieldError(path, ErrorType.INVALID, value, detail, as_json)


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error of a value that is not allowed."""
    return FieldError(path, ErrorType.FORBIDDEN, None, detail)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    """Return the error of a value that is not one of the supported ones.

    Args:
        path: The field.
        value: The value seen; the Go type of a string is a named one.
        supported: The supported values, in the order of the message.
    """
    quoted = ", ".join(f'"{each}"' for each in supported)
    return FieldError(path, ErrorType.NOT_SUPPORTED, value, f"supported values: {quoted}", as_json=True)


def too_long(path: str, limit: int) -> FieldError:
    """Return the error of a value with too many bytes; the value itself is not shown."""
    return FieldError(path, ErrorType.TOO_LONG, None, f"may not be more than {limit} byte{'' if limit == 1 else 's'}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """Return the error of a list with `count` items where at most `limit` are allowed."""
    return FieldError(path, ErrorType.TOO_MANY, count, f"must have at most {limit} item{'' if limit == 1 else 's'}")


def not_found(path: str, value: Any) -> FieldError:
    """Return the error of a value that names something that does not exist."""
    return FieldError(path, ErrorType.NOT_FOUND, value)


def duplicate(path: str, value: Any) -> FieldError:
    """Return the error of a value that occurs more than once."""
    return FieldError(path, ErrorType.DUPLICATE, value)


def internal(path: str, detail: str) -> FieldError:
    """Return the error of a value that the API server cannot validate."""
    return FieldError(path, ErrorType.INTERNAL, None, detail)


def invalid_message(
    name: str,
    errors: Iterable[FieldError],
    *,
    kind: str = "HorizontalPodAutoscaler",
    group: str = "autoscaling",
) -> str:
    """Write the message with which the server refuses an object; each finding is said once.

    Args:
        name: Name of the object.
        errors: What was found, at least one.
        kind: Kind of the object.
        group: Group of the kind; empty for the core group.

    Returns:
        One line.

    Example:
        >>> invalid_message("web", [required("spec.scaleTargetRef.kind")])
        'HorizontalPodAutoscaler.autoscaling "web" is invalid: spec.scaleTargetRef.kind: Required value'
    """
    said = list(dict.fromkeys(map(str, errors)))
    found = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return f"{kind}{'.' if group else ''}{group} {go_quoted(name)} is invalid: {found}"


_JSON_ESCAPES: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def _go_json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)
