"""Texts for calls of webhooks that fail, as Go's HTTP client and `k8s.io/client-go/rest` have them."""

import asyncio
import json
import os
import ssl
from typing import Any, Final

import aiohttp

from ocf.cluster.generic_messages import generic_message
from ocf.objects.json_syntax import json_problem
from ocf_server.api.json_errors import UNREADABLE_HEAD, untyped_problem

__all__ = ["ResponseError", "call_problem", "read_response"]

# The statuses that client-go reads as a success: from StatusOK to StatusPartialContent.
_OK: Final = range(200, 207)
_MAX_BODY_SHOWN: Final = 200
_UNTRUSTED: Final = "certificate signed by unknown authority"
_CERTIFICATES: Final = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
}
"""Texts by the codes of `X509_verify_cert` of OpenSSL."""


class ResponseError(ValueError):
    """A response that has no AdmissionReview or ConversionReview; the message is the text."""


def call_problem(error: Exception) -> str:
    """Return the text for a call without a response.

    Args:
        error: The error of aiohttp, or the one of the TLS context.

    Example:
        >>> call_problem(TimeoutError())
        'context deadline exceeded'
        >>> call_problem(aiohttp.ServerDisconnectedError())
        'EOF'
    """
    match error:
        case asyncio.TimeoutError():
            problem = "context deadline exceeded"
        case aiohttp.ClientConnectorCertificateError():
            problem = _certificate(error)
        case aiohttp.ClientConnectorError():
            problem = _connection(error)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            problem = "EOF"
        case aiohttp.InvalidURL():
            problem = "invalid URL"
        case ssl.SSLError():
            problem = "unable to load root certificates: unable to parse bytes as PEM block"
        case OSError():
            problem = _reason(error)
        case _:
            # That of a CA bundle that cannot be decoded is our own; those of libraries are those of one version.
            problem = str(error) if type(error) is ValueError else "malformed HTTP response"
    return problem


def _connection(error: aiohttp.ClientConnectorError) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            return "tls: first record does not look like a TLS handshake"
    cause = error.os_error
    if isinstance(cause, ConnectionResetError):
        return f"read tcp {error.host}:{error.port}: read: connection reset by peer"
    return f"dial tcp {error.host}:{error.port}: connect: {_reason(cause)}"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "the connection failed"


def _certificate(error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    text = "the certificate does not match"
    if isinstance(cause, ssl.SSLCertVerificationError):
        text = _CERTIFICATES.get(cause.verify_code, cause.verify_message)
    return f"tls: failed to verify certificate: x509: {text}"


def read_response(status: int, media_type: str, body: bytes) -> Any:
    """Return the object of a response.

    Returns:
        The body as JSON, an object.

    Raises:
        ResponseError: If the status is not that of a success, or the body is not an object.

    Example:
        >>> read_response(200, "application/json", b"{}")
        {}
        >>> read_response(404, "text/plain", b"not here")
        Traceback (most recent call last):
        ocf_server.api.webhook_call_errors.ResponseError: the server could not find the requested resource
    """
    if status not in _OK:
        text = body[:_MAX_BODY_SHOWN].decode(errors="replace").strip() if media_type.startswith("text/") else "unknown"
        raise ResponseError(generic_message(status, text))
    if not body:
        raise ResponseError(f"0-length response with status code: {status} and content type: {media_type}")
    try:
        # Go's decoder replaces bytes that are not UTF-8.
        found = json.loads(body.decode(errors="replace"))
    except json.JSONDecodeError as error:
        raise ResponseError(f"{UNREADABLE_HEAD}{json_problem(body).message}") from error
    except RecursionError as error:
        raise ResponseError(f"{UNREADABLE_HEAD}exceeded max depth") from error
    except ValueError as error:
        raise ResponseError(f"{UNREADABLE_HEAD}an integer has too many digits") from error
    if not isinstance(found, dict):
        raise ResponseError(f"{UNREADABLE_HEAD}{untyped_problem(found)}")
    return found
