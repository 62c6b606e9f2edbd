"""Continue tokens: where a list goes on, and of which version it is."""

import base64
import binascii
import json

from ocf.embedded.api.status_errors import bad_request
from ocf.embedded.registry.storage import Place

__all__ = ["read_token", "write_token"]


def write_token(version: int, last: Place) -> str:
    """Write a token.

    Args:
        version: The version the list is of.
        last: The last object of the page before.

    Returns:
        A text that means nothing to a caller.
    """
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": list(last)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def read_token(text: str) -> tuple[int, Place]:
    """Read a token.

    Args:
        text: What `write_token` wrote.

    Returns:
        The version, and the last object of the page before.

    Raises:
        BadRequestError: If it is something else.

    Example:
        >>> read_token(write_token(7, ("shop", "web")))
        (7, ('shop', 'web'))
    """
    try:
        token = json.loads(base64.urlsafe_b64decode(text))
        namespace, name = token["start"]
        return int(token["rv"]), (str(namespace), str(name))
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
