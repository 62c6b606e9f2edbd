"""The user of requests.

There is no authentication: every client is the administrator, unless it sends a token that this server has issued.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ADMINISTRATOR", "ADMINISTRATOR_TOKEN", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Args:
        uid: The uid; empty for none.
        extra: Further values, for example the pod of a token.
    """

    username: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """Return the user as `UserInfo` of `authentication.k8s.io/v1`."""
        extra = {name: list(values) for name, values in self.extra.items()}
        found = {"username": self.username, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {name: value for name, value in found.items() if value}


ADMINISTRATOR: Final = User("admin", ("system:masters", "system:authenticated"))
"""The user of a request without a token of this server."""

ADMINISTRATOR_TOKEN: Final = "ocf"  # noqa: S105 (in every kubeconfig, and not checked)
"""The token that kubeconfigs have for the administrator."""
