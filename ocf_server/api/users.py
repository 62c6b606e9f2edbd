"""The user of a request.

Without authorization, a request without credentials of this server is that of the administrator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.cluster.impersonation import Impersonation

__all__ = [
    "ADMINISTRATOR",
    "ADMINISTRATOR_TOKEN",
    "ANONYMOUS",
    "AUTHENTICATED",
    "MASTERS",
    "User",
    "account_groups",
    "account_of",
    "impersonated",
]

MASTERS: Final = "system:masters"
"""The group whose members may do everything."""
AUTHENTICATED: Final = "system:authenticated"
"""The group of all users but the anonymous one."""
_UNAUTHENTICATED: Final = "system:unauthenticated"
_ANONYMOUS: Final = "system:anonymous"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNTS: Final = "system:serviceaccounts"


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


ADMINISTRATOR: Final = User("admin", (MASTERS, AUTHENTICATED))
"""The user of a request without a token of this server."""

ANONYMOUS: Final = User(_ANONYMOUS, (_UNAUTHENTICATED,))
"""The user of a request without credentials where they are required."""

ADMINISTRATOR_TOKEN: Final = "ocf"  # noqa: S105 (in every kubeconfig; without authorization it is not checked)
"""The token that kubeconfigs have for the administrator."""


def account_of(username: str) -> tuple[str, str] | None:
    """Return the namespace and the name of a service account; None for the name of another user.

    Example:
        >>> account_of("system:serviceaccount:shop:operator"), account_of("system:serviceaccount:shop")
        (('shop', 'operator'), None)
    """
    namespace, _, name = username.removeprefix(_ACCOUNT).partition(":")
    is_account = username.startswith(_ACCOUNT) and namespace and name and ":" not in name
    return (namespace, name) if is_account else None


def account_groups(namespace: str) -> tuple[str, str]:
    """Return the groups of all service accounts of a namespace."""
    return _ACCOUNTS, f"{_ACCOUNTS}:{namespace}"


def impersonated(acting: Impersonation) -> User:
    """Return the user that a request acts as, with the groups that the API server adds.

    A service account is in the groups of all service accounts, unless groups are given; every user is in
    `system:authenticated`, and `system:anonymous` in `system:unauthenticated`.

    Example:
        >>> impersonated(Impersonation("system:serviceaccount:shop:operator")).groups
        ('system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated')
        >>> impersonated(Impersonation("alice", groups=("dev",))).groups
        ('dev', 'system:authenticated')
    """
    account = account_of(acting.user)
    found = acting.groups or (account_groups(account[0]) if account else ())
    added = _UNAUTHENTICATED if acting.user == _ANONYMOUS else AUTHENTICATED
    # A request can choose to be unauthenticated, whoever the user is.
    if added not in found and _UNAUTHENTICATED not in found:
        found = (*found, added)
    return User(acting.user, found, acting.uid, acting.extra)
