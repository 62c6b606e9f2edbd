"""Features of CEL that a real API server supports and the embedded one does not.

An expression with such a feature is rejected, because the result of a partial evaluation would be misleading.
"""

from typing import Final

from ocf.errors import ApiError
from ocf_server.api.status_errors import unsupported

__all__ = ["missing_library", "unsupported_feature"]

_INSTEAD: Final = "rewrite the expression without it, or test it against a real API server"


def unsupported_feature(what: str) -> ApiError:
    """Return the error for an expression with an unsupported feature."""
    return unsupported(f"evaluate {what} in CEL expressions", _INSTEAD)


def missing_library() -> ApiError:
    """Return the error for an expression if the parser library is not installed."""
    return unsupported("evaluate CEL expressions", "install ocf[cel], or remove them")
