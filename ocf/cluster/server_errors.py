"""Client errors that the API server reports as 500 (internal server error).

An apply that does not match the schema, and a strategic merge patch that contradicts itself, are answered with 500 and
no reason. A retry does not help, so these answers are recognized by the beginning of their message: nothing else
identifies them.
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
    """Return an `InvalidError` in place of a 500 that was caused by the request; a retry does not help.

    Args:
        error: The error of the answer.

    Returns:
        An `InvalidError` with the same message and code for such a 500; every other error unchanged.

    Example:
        >>> from ocf.errors import api_error
        >>> text = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.colour: ..."
        >>> type(as_client_error(api_error(text, code=500))).__name__
        'InvalidError'
    """
    if error.code == _INTERNAL and not error.reason and error.message.startswith(_BEGINNINGS):
        return InvalidError(error.message, code=error.code, causes=error.causes, retry_after=error.retry_after)
    return error
