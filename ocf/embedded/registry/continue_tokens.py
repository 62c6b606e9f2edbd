"""Continue tokens of paged lists: the resourceVersion of the list and the last object of the previous page."""

import base64
import binascii
import json

from ocf.embedded.api.status_errors import bad_request
from ocf.embedded.registry.storage import Place

__all__ = ["read_token", "write_token"]


def write_token(version: int, last: Place) -> str:
    """Write a continue token.

    Args:
        version: The resourceVersion of the list.
        last: Namespace and name of the last object of the page.

    Returns:
        The token, which is opaque to clients.
    """
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": list(last)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def read_token(text: str) -> tuple[int, Place]:
    """Read a continue token.

    Args:
        text: A token of `write_token`.

    Returns:
        The resourceVersion of the list, and namespace and name of the last object of the previous page.

    Raises:
        BadRequestError: If the token is malformed.

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
