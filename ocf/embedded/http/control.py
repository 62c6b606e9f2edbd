"""The seam for what is done to a server beside the API, such as injecting faults.

What that is this room does not know: rooms above fill it.
"""

from typing import Any, Final, Protocol

__all__ = ["CONTROL", "Control"]

CONTROL: Final = "/ocf/"
"""Under which path the control is."""


class Control(Protocol):
    """What is done to the server beside the API; what it can do is for who makes it to say."""

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Do something.

        Args:
            method: The HTTP method.
            path: What follows `CONTROL` in the path.
            body: The body.

        Returns:
            JSON values.

        Raises:
            ConfigError: If it makes no sense.
            ApiError: If it is refused.
        """
        ...
