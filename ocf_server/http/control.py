"""Interface for requests beside the Kubernetes API, such as injecting faults.

This package only defines the interface; packages above it implement it.
"""

from typing import Any, Final, Protocol

__all__ = ["CONTROL", "Control"]

CONTROL: Final = "/ocf/"
"""Path prefix of requests that go to the `Control`."""


class Control(Protocol):
    """Handler of requests beside the Kubernetes API; its implementation defines the requests."""

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Handle a request.

        Args:
            method: The HTTP method.
            path: The path without the prefix `CONTROL`.
            body: The request body.

        Returns:
            The response body as JSON values.

        Raises:
            ConfigError: If the request is invalid.
            ApiError: If the request is rejected.
        """
        ...
