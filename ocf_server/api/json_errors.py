"""Texts of Go's JSON decoder, in which API servers are written."""

from typing import Any, Final

from ocf_server.api.status_errors import go_shape

__all__ = ["UNREADABLE_HEAD", "untyped_problem"]

UNREADABLE_HEAD: Final = "couldn't get version/kind; json parse error: "
"""Start of the message where `apiVersion` and `kind` of an object cannot be read."""


def untyped_problem(value: Any) -> str:
    """Return the text for JSON that is not an object, so that it has no `apiVersion` and `kind`.

    Example:
        >>> untyped_problem([])[:48]
        'json: cannot unmarshal array into Go value of ty'
    """
    head = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    return f"json: cannot unmarshal {go_shape(value)} into Go value of type {head}"
