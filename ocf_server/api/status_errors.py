"""Errors of the API server.

Class, code, reason and text are those of a real API server, so that a test shows the same errors as production.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from ocf.errors import (
    ApiError,
    ExpiredError,
    FieldProblem,
    ForbiddenError,
    InvalidError,
    NoKindMatchError,
    StatusCause,
    api_error,
)
from ocf.objects.go_strings import go_quoted
from ocf_server.api.numbers import encoded_numbers, go_number

__all__ = [
    "DeniedError",
    "ExpiredPageError",
    "already_exists",
    "bad_request",
    "expired",
    "forbidden",
    "go_json",
    "go_shape",
    "go_text",
    "go_value",
    "invalid",
    "method_not_allowed",
    "no_kind_match",
    "no_such_resource",
    "not_found",
    "stale",
    "unsupported",
    "unsupported_patch",
]


def go_json(value: Any) -> str:
    """Return a value as compact JSON, the form in most error messages of the API server."""
    return json.dumps(encoded_numbers(value), separators=(",", ":"), ensure_ascii=False)


def go_value(value: Any) -> str:
    r"""Return a value as the API server shows it in an error of a field.

    Example:
        >>> [go_value(value) for value in ("a\tb", 1e20, {"b": 1e20, "a": [0.00001, 1e21]}, None)]
        ['"a\\tb"', '1e+20', '{"a":[0.00001,1e+21],"b":100000000000000000000}', 'null']
    """
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, float):
        return go_number(value)
    return _go_json(value)


def _go_json(value: Any) -> str:
    """Return a value as Go encodes it: with sorted keys, and with exponents of numbers from 21 digits on."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_go_json(name)}:{_go_json(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_go_json, value))}]"
    if isinstance(value, float) and (not value or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN):
        return f"{Decimal(repr(value)).normalize():f}"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return "".join(_HTML.get(char, char) for char in text)
    return text.replace("e-0", "e-")


_LEAST_PLAIN: Final = 1e-6
_MOST_PLAIN: Final = 1e21
_HTML: Final = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def go_text(value: Any) -> str:
    """Return a value in the default format of Go, the form in the other error messages of the API server."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_number(value)
    return "<nil>" if value is None else str(value)


def no_such_resource() -> ApiError:
    """Return the error for a kind that is not served."""
    return api_error("the server could not find the requested resource", code=404, reason="NotFound")


def no_kind_match() -> NoKindMatchError:
    """Return the same error as its client raises it, which has asked for the kind before."""
    missing = no_such_resource()
    return NoKindMatchError(missing.message, code=missing.code, reason=missing.reason)


def method_not_allowed() -> ApiError:
    """Return the error for a verb that the resource does not support."""
    message = "the server does not allow this method on the requested resource"
    return api_error(message, code=405, reason="MethodNotAllowed")


def not_found(group_resource: str, name: str) -> ApiError:
    """Return the error for an object that does not exist."""
    return api_error(f'{group_resource} "{name}" not found', code=404, reason="NotFound")


def already_exists(group_resource: str, name: str, *, deleting: bool, generated: bool = False) -> ApiError:
    """Return the error for a create with the name of an existing object.

    Args:
        group_resource: Resource and group, `deployments.apps`.
        deleting: Whether the existing object is being deleted.
        generated: Whether the API server generated the name from `generateName`.

    Returns:
        The error; for a generated name it asks the client to try again after a second.
    """
    message = f'{group_resource} "{name}" already exists'
    if generated:
        message = f"{message}, the server was not able to generate a unique name for the object"
    if deleting:
        message = f"object is being deleted: {message}"
    return api_error(message, code=409, reason="AlreadyExists", retry_after=1 if generated else None)


def stale(group_resource: str, name: str, problem: str = "") -> ApiError:
    """Return the conflict error for a write that is based on an outdated object."""
    problem = problem or "the object has been modified; please apply your changes to the latest version and try again"
    return api_error(
        f'Operation cannot be fulfilled on {group_resource} "{name}": {problem}', code=409, reason="Conflict"
    )


def expired(message: str) -> ApiError:
    """Return the error for a resourceVersion or continue token that is too old."""
    return api_error(message, code=410, reason="Expired")


class ExpiredPageError(ExpiredError):
    """A continue token is of a version that the history does not contain any more.

    Args:
        continue_token: A token with which a client reads the rest of the list at the latest version.
    """

    def __init__(self, continue_token: str) -> None:
        super().__init__(_INCONSISTENT, code=410, reason="Expired")
        self.continue_token = continue_token


_INCONSISTENT: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def bad_request(message: str) -> ApiError:
    """Return the error for a malformed request."""
    return api_error(message, code=400, reason="BadRequest")


def forbidden(group_resource: str, name: str, problem: str, causes: Sequence[StatusCause] = ()) -> ApiError:
    """Return the error for a forbidden request; the name is empty for an object whose name is generated."""
    subject = f'{group_resource} "{name}"' if name else group_resource
    message = f"{subject} is forbidden: {problem}"
    return api_error(message, code=403, reason="Forbidden", causes=causes)


class DeniedError(ForbiddenError):
    """A request denied by admission with a message that does not name the object.

    Args:
        group_resource: The resource, with its group after a point.
        messages: The messages; the first one is that of the error, all are causes.
        reason: The `reason` of the Status.
    """

    def __init__(self, group_resource: str, name: str, messages: Sequence[str], reason: str) -> None:
        causes = [StatusCause("", message) for message in messages]
        super().__init__(messages[0], code=403, reason=reason, causes=causes)
        self.group_resource, self.name = group_resource, name


def unsupported_patch() -> ApiError:
    """Return the error for a patch type that the resource does not support."""
    listed = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return api_error(message, code=415, reason="UnsupportedMediaType")


def unsupported(what: str, instead: str) -> ApiError:
    """Return the error for a feature of a real API server that the embedded one does not support."""
    return bad_request(f"the embedded cluster cannot {what}; {instead}")


_REASONS: Final = {
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Internal error": "InternalError",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
}


def invalid(group_kind: str, name: str, problems: Sequence[FieldProblem]) -> InvalidError:
    """Return the error for an invalid object; each detail starts with its type: `Invalid value`, `Required value`.

    The message contains each text once; the causes are all problems.
    """
    texts = list(dict.fromkeys(map(str, problems)))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [StatusCause(_reason(problem.detail), problem.detail, problem.path) for problem in problems]
    return InvalidError(f'{group_kind} "{name}" is invalid: {text}', code=422, reason="Invalid", causes=causes)


def _reason(detail: str) -> str:
    if " in body must be of type " in detail:
        return "FieldValueTypeInvalid"
    return _REASONS.get(detail.partition(":")[0], "FieldValueInvalid")


def go_shape(value: Any) -> str:
    """Return the JSON type of a value, as Go's decoder names it.

    Example:
        >>> [go_shape(value) for value in ({}, [], "a", True, 1.5, None)]
        ['object', 'array', 'string', 'bool', 'number', 'null']
    """
    if value is None:
        return "null"
    # By the exact type, because a bool is an int.
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
