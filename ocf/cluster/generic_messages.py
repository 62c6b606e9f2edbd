"""Messages of Kubernetes' clients for responses without a Status: from a proxy, a webhook, or an unknown path."""

from typing import Final

__all__ = ["generic_message"]

_SENTENCES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_NOT_ACCEPTABLE: Final = 406
_OF_THE_SERVER: Final = frozenset({403, _NOT_ACCEPTABLE, 415})
_UNKNOWN: Final = "unknown"
_FIRST_SERVER_CODE: Final = 500


def generic_message(code: int, text: str = _UNKNOWN) -> str:
    """Return the message for an HTTP status, as `NewGenericServerResponse` of `k8s.io/apimachinery` has it.

    Args:
        code: The HTTP status, from 300.
        text: The body, if it is text.

    Example:
        >>> generic_message(404)
        'the server could not find the requested resource'
        >>> generic_message(500, "oops")
        'an error on the server ("oops") has prevented the request from succeeding'
    """
    if code == _NOT_ACCEPTABLE and text == _UNKNOWN:
        return "the server was unable to respond with a content type that the client supports"
    if code in _OF_THE_SERVER:
        return text
    if code in _SENTENCES:
        return _SENTENCES[code]
    if code >= _FIRST_SERVER_CODE:
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"
