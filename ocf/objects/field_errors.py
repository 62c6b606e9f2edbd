r"""What the API server says about a field, and how it says it.

The same finding travels in two forms: as a cause of the refused request (field, reason, text) and as a line of its
message. Both print the offending value the way Go prints it, and Go has two ways for a text: as a literal of its own,
for plain strings, and as JSON, for everything whose type has a name. They differ in control characters, in `<`, `>`
and `&`, and nowhere else; but who greps a log for the server's words should find them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ocf.errors import StatusCause

__all__ = [
    "ErrorType",
    "FieldError",
    "duplicate",
    "forbidden",
    "invalid",
    "invalid_message",
    "not_supported",
    "required",
    "too_long",
]


class ErrorType(StrEnum):
    """What kind of mistake it is; the `reason` of the cause in the server's answer."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    DUPLICATE = "FieldValueDuplicate"

    @property
    def words(self) -> str:
        """The words that a message begins with."""
        return _WORDS[self]


_WORDS: Final = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.DUPLICATE: "Duplicate value",
}
_SHOWING_THE_VALUE: Final = frozenset({ErrorType.INVALID, ErrorType.NOT_SUPPORTED, ErrorType.DUPLICATE})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding of the validation, in the words of the API server.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/.

    Args:
        path: The field as the server writes it, `spec.metrics[0].type`.
        type: What kind of mistake it is.
        value: The value seen, as JSON; None where the message does not show it.
        detail: What is wrong with it, or what is allowed.
        as_json: Whether the server prints a text as JSON instead of as a Go literal.

    Example:
        >>> error = FieldError("spec.maxReplicas", ErrorType.INVALID, -1, "must be greater than or equal to 1")
        >>> error.message
        'Invalid value: -1: must be greater than or equal to 1'
        >>> str(error)
        'spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1'
    """

    path: str
    type: ErrorType
    value: Any = field(default=None, hash=False)
    detail: str = ""
    as_json: bool = field(default=False, repr=False)

    @property
    def message(self) -> str:
        """The text of the cause, without the field."""
        shown = f"{self.type.words}: {self._shown()}" if self.type in _SHOWING_THE_VALUE else self.type.words
        return f"{shown}: {self.detail}" if self.detail else shown

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def to_cause(self) -> StatusCause:
        """Return the cause that a Status carries for it."""
        return StatusCause(self.type.value, self.message, self.path)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON: `path`, `type`, `value`, `detail` and `message`."""
        return {
            "path": self.path,
            "type": self.type.value,
            "value": self.value,
            "detail": self.detail,
            "message": self.message,
        }

    def _shown(self) -> str:
        if isinstance(self.value, str) and not self.as_json:
            return _go_literal(self.value)
        return _go_json(self.value)


def required(path: str, detail: str = "") -> FieldError:
    """Say that a value is missing."""
    return FieldError(path, ErrorType.REQUIRED, None, detail)


def invalid(path: str, value: Any, detail: str, *, as_json: bool = False) -> FieldError:
    """Say that a value is malformed or out of bounds."""
    return FieldError(path, ErrorType.INVALID, value, detail, as_json)


def forbidden(path: str, detail: str) -> FieldError:
    """Say that a value may not be there."""
    return FieldError(path, ErrorType.FORBIDDEN, None, detail)


def not_supported(path: str, value: str, supported: Sequence[str]) -> FieldError:
    """Say that a value is none of those that are known.

    Args:
        path: The field.
        value: The value seen; the server holds it in a type with a name.
        supported: The values that are known, in the order of the message.
    """
    quoted = ", ".join(f'"{each}"' for each in supported)
    return FieldError(path, ErrorType.NOT_SUPPORTED, value, f"supported values: {quoted}", as_json=True)


def too_long(path: str, limit: int) -> FieldError:
    """Say that a value has more bytes than are allowed; the value itself is not shown."""
    return FieldError(path, ErrorType.TOO_LONG, None, f"may not be more than {limit} bytes")


def duplicate(path: str, value: Any) -> FieldError:
    """Say that a value is there already, where each may be only once."""
    return FieldError(path, ErrorType.DUPLICATE, value)


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
    return f"{kind}{'.' if group else ''}{group} {_go_literal(name)} is invalid: {found}"


_GO_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}
_ONE_BYTE: Final = 0x80
_TWO_BYTES: Final = 0x10000


def _go_literal(text: str) -> str:
    return f'"{"".join(map(_go_character, text))}"'


def _go_character(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < _ONE_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _TWO_BYTES else f"\\U{code:08x}"


_JSON_ESCAPES: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def _go_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)
