"""Refusals that a server words as failures of its own.

An apply that does not fit the schema, and a strategic merge patch that contradicts itself, are answered with 500 and no
reason, as if the server had failed. They stay refused however often they are sent, so they are told by the beginning of
their message, which is all that tells them.
"""

from typing import Final

from ocf.errors import ApiError, InvalidError

__all__ = ["as_client_error"]

_INTERNAL: Final = 500
_BEGINNINGS: Final = (
    "failed to create typed patch object (",
    "failed to create typed live object (",
    "failed to convert new object (",
    "failed to create manager for existing fields",
    "The order in patch list:",
    "unknown patch type: ",
    "list element types are not identical",
    "lists of lists are not supported",
    "cannot merge lists without merge key",
    "merging lists cannot yet be specified in the patch",
    "map: map[",
)


def as_client_error(error: ApiError) -> ApiError:
    """Return the error that retrying cannot help, where a server only looks as if it had failed.

    Args:
        error: What the answer looks like.

    Returns:
        An `InvalidError` with the same message and code for what a server refuses with 500; every other error as it
        is.

    Example:
        >>> from ocf.errors import api_error
        >>> text = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.colour: ..."
        >>> type(as_client_error(api_error(text, code=500))).__name__
        'InvalidError'
    """
    if error.code == _INTERNAL and not error.reason and error.message.startswith(_BEGINNINGS):
        return InvalidError(error.message, code=error.code, causes=error.causes, retry_after=error.retry_after)
    return error
