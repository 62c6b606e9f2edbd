"""API errors with the messages of the built-in controller's client.

A message of the server is used unchanged. If the response has none (it came from a proxy, or from an API server that
does not have the path), the client has one message for each HTTP status. Users find these messages in conditions and
events, so they are the same here.
"""

from typing import Final

from ocf.cluster.client.responses import NO_STATUS_MESSAGE
from ocf.cluster.generic_messages import generic_message
from ocf.errors import ApiError, api_error

__all__ = ["with_client_message"]

_REFUSED: Final = range(300, 600)


def with_client_message(error: ApiError, path: str, *subject: str) -> ApiError:
    """Return an error with the message of the built-in controller's client.

    Args:
        *subject: The resource, `pods.metrics.k8s.io`, and the name of the object, if one was read.

    Example:
        >>> untold = api_error("GET /x: HTTP 503 without a Status that gives the reason", code=503)
        >>> print(with_client_message(untold, "/x", "pods.metrics.k8s.io"))
        the server is currently unable to handle the request (get pods.metrics.k8s.io)
    """
    if error.code not in _REFUSED:
        return error
    if error.message.endswith(NO_STATUS_MESSAGE):
        message = f"{generic_message(error.code)} ({' '.join(['get', *filter(None, subject)])})"
    else:
        message = error.message.removeprefix(f"GET {path}: ")
    return api_error(message, code=error.code, reason=error.reason, causes=error.causes, retry_after=error.retry_after)
