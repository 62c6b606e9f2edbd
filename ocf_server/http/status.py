"""`Status` documents for errors, with the texts of a real API server.

Errors of the cluster are `ApiError`s, which are converted here to documents. The errors that only the HTTP server
raises (media types, methods, sizes) are also defined here.
"""

import re
from typing import Final

from ocf.errors import ApiError, FieldProblem, InvalidError, StatusCause, api_error
from ocf.objects import Manifest
from ocf_server.api.status_errors import DeniedError, ExpiredPageError

__all__ = [
    "bad_body",
    "bad_option",
    "not_acceptable",
    "not_acceptable_form",
    "status_of",
    "too_large",
    "unknown_body",
    "unknown_media",
    "unsupported_patch",
]

_BODY_TYPES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_SHOWN_BYTES: Final = 30
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_of(error: ApiError) -> Manifest:
    """Return the `Status` for an error.

    Example:
        >>> status_of(api_error('pods "web" not found', code=404, reason="NotFound"))["details"]
        {'name': 'web', 'kind': 'pods'}
    """
    status: Manifest = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": error.continue_token} if isinstance(error, ExpiredPageError) else {},
        "status": "Failure",
        "message": error.message,
    }
    reason = error.reason or _REASONS.get(error.code, "")
    if reason:
        status["reason"] = reason
    details = {**(error.subject or _named(error)), **_causes(error)}
    if error.retry_after is not None:
        details["retryAfterSeconds"] = max(1, round(error.retry_after))
    if details or error.code in _WITH_DETAILS or error.message.startswith(_GENERIC):
        status["details"] = details
    return {**status, "code": error.code}


_WITH_DETAILS: Final = (404, 405)
_UNKNOWN_MEDIA: Final = "406: Not Acceptable"
_UNKNOWN_PATCH: Final = "415: Unsupported Media Type"
_PATH: Final = "forbidden: User "
_GENERIC: Final = (
    _UNKNOWN_MEDIA,
    _UNKNOWN_PATCH,
    _PATH,
    "the server rejected our request due to an error in our request",
)
_NAMED: Final = (
    re.compile(r'(?:object is being deleted: )?(?P<kind>[a-z0-9.-]+) "(?P<name>[^"]*)" (?:not found|already exists)'),
    re.compile(r'Operation cannot be fulfilled on (?P<kind>[A-Za-z0-9./-]+) "(?P<name>[^"]*)":'),
    re.compile(r'(?P<kind>[A-Za-z0-9.-]+) "(?P<name>[^"]*)" is (?:invalid|forbidden):'),
)


def _named(error: ApiError) -> Manifest:
    """Return the object that an error is about; most often it is parsed from the start of the message."""
    if isinstance(error, DeniedError):
        return _subject(error.group_resource, error.name)
    for pattern in _NAMED:
        found = pattern.match(error.message)
        if found:
            return _subject(found["kind"], found["name"])
    return {}


def _subject(group_resource: str, name: str) -> Manifest:
    kind, _, group = group_resource.partition(".")
    return {key: value for key, value in {"name": name, "group": group, "kind": kind}.items() if value}


def _causes(error: ApiError) -> Manifest:
    causes = [
        {key: value for key, value in (("reason", one.reason), ("message", one.message), ("field", one.field)) if value}
        for one in error.causes
    ]
    return {"causes": causes} if causes else {}


def _status_error(message: str, code: int) -> ApiError:
    return api_error(message, code=code, reason=_REASONS[code])


def unknown_media(offered: tuple[str, ...]) -> ApiError:
    """Return the error for an `Accept` header without a media type that the router of the server knows."""
    return _status_error(f"{_UNKNOWN_MEDIA}\n\nAvailable representations: {', '.join(offered)}", 406)


def not_acceptable(offered: tuple[str, ...]) -> ApiError:
    """Return the error for an `Accept` header without a media type and a form that the server can write."""
    return _status_error(f"only the following media types are accepted: {', '.join(offered)}", 406)


def not_acceptable_form(form: str, go_type: str, *, listed: bool) -> ApiError:
    """Return the error for the form of a list where there is an object, or the reverse."""
    problem = f"is a list ({go_type})" if listed else f"is not a list ({go_type})"
    return _status_error(f"you requested {form}, but the requested object {problem}", 406)


def unknown_body() -> ApiError:
    """Return the error for a body with an unknown media type."""
    types = ", ".join(_BODY_TYPES)
    return _status_error(
        f"the body of the request was in an unknown format - accepted media types include: {types}", 415
    )


def unsupported_patch() -> ApiError:
    """Return the error for a patch with an unknown media type."""
    return _status_error(_UNKNOWN_PATCH, 415)


def too_large(limit: int) -> ApiError:
    """Return the error for a body larger than the limit."""
    return _status_error(f"Request entity too large: limit is {limit}", 413)


def bad_body(kind: str, problem: str, body: bytes) -> ApiError:
    """Return the error for a body that is not an object.

    Args:
        problem: The problem with the body.
        body: The body; the message shows its start.
    """
    shown = _summary(body)
    return _status_error(f"the object provided is unrecognized (must be of type {kind}): {problem} ({shown})", 400)


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start = body[:_SHOWN_BYTES]
    text = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return f"{text} ..." if len(body) > _SHOWN_BYTES else text


def bad_option(options: str, name: str, seen: str, allowed: tuple[str, ...]) -> ApiError:
    """Return the error for an option with an invalid value.

    Args:
        options: The kind of the options, for example `CreateOptions`.
    """
    detail = f"Unsupported value: {seen}: supported values: " + ", ".join(f'"{value}"' for value in allowed)
    problem = FieldProblem(name, detail)
    cause = StatusCause("FieldValueNotSupported", detail, name)
    message = f'{options}.meta.k8s.io "" is invalid: {problem}'
    return InvalidError(message, code=422, reason="Invalid", causes=[cause])
