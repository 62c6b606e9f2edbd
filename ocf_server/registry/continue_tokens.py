"""Continue tokens of paged lists: the resourceVersion of the list and the last object of the previous page."""

import base64
import binascii
import json
from typing import Final

from ocf.errors import ApiError
from ocf_server.api.status_errors import bad_request
from ocf_server.registry.storage import Place

__all__ = ["LATEST", "read_token", "write_token"]

LATEST: Final = -1
"""The version of a token that continues a list at the latest version."""


def write_token(version: int, last: Place) -> str:
    """Write a continue token.

    Args:
        version: The resourceVersion of the list, or `LATEST`.
        last: Namespace and name of the last object of the page.

    Returns:
        The token, which is opaque to clients.
    """
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": list(last)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def read_token(text: str, newest: int) -> tuple[int, Place]:
    """Read a continue token.

    Args:
        text: A token of `write_token`.

    Returns:
        The resourceVersion of the list, and namespace and name of the last object of the previous page.

    Raises:
        BadRequestError: If the token is malformed, or of a resourceVersion in the future.

    Example:
        >>> read_token(write_token(7, ("shop", "web")), newest=9)
        (7, ('shop', 'web'))
    """
    try:
        token = json.loads(base64.urlsafe_b64decode(text))
        namespace, name = token["start"]
        version = token["rv"]
    except (binascii.Error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _invalid("it was not returned by this server") from error
    # A token of an earlier server in the same place would page through other versions.
    if not (isinstance(version, int) and isinstance(namespace, str) and isinstance(name, str)) or version > newest:
        raise _invalid("it was not returned by this server")
    return newest if version == LATEST else version, (namespace, name)


def _invalid(problem: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {problem}")
