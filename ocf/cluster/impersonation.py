"""Users as whom requests are made: the identity of an impersonated user, and its headers.

The user who authenticates needs the right to impersonate, the verb `impersonate`; the API server then authorizes the
request as the other user
(https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ocf.errors import ConfigError
from ocf.objects.name_validation import dns_label, dns_subdomain

__all__ = ["NO_EXTRA", "Impersonation", "ServiceAccount"]

NO_EXTRA: Final[Mapping[str, Sequence[str]]] = {}
"""No further attributes of a user."""

_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")  # of RFC 9110, without "%"
_ACCOUNTS: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account: the one that an operator runs as, or one as which it acts.

    Args:
        name: Name of the account. Only this may come from the spec of an owner.
        namespace: Its namespace. Taken from what a user writes, it would let the user choose any account of the
            cluster.

    Example:
        >>> ServiceAccount("deployer", "town").username
        'system:serviceaccount:town:deployer'
    """

    name: str
    namespace: str

    @property
    def username(self) -> str:
        """Name of its user.

        Raises:
            ConfigError: If no account can have this name, or this namespace.
        """
        for what, text, rule in (("name", self.name, dns_subdomain), ("namespace", self.namespace, dns_label)):
            for problem in rule(text):
                raise ConfigError(f'{what} of a service account: "{text}": {problem}')
        return f"{_ACCOUNTS}{self.namespace}:{self.name}"


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user as whom requests are made, as `rest.ImpersonationConfig` of client-go.

    Args:
        user: Name of the user.
        uid: UID of the user; empty sends none.
        groups: Groups of the user. The server adds `system:authenticated`.
        extra: Further attributes of the user, with their values. Keys are sent in lower case, as the server reads them.

    Raises:
        ConfigError: If there is no user, a key of `extra` is empty, or a value cannot be sent in a header.

    Example:
        >>> jane = Impersonation("jane", groups=("dev", "ops"), extra={"example.com/team": ("web",)})
        >>> for name, value in jane.headers():
        ...     print(f"{name}: {value}")
        Impersonate-User: jane
        Impersonate-Group: dev
        Impersonate-Group: ops
        Impersonate-Extra-example.com%2Fteam: web
    """

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user:
            raise ConfigError("requests cannot impersonate a uid, groups or extra attributes without a user; name one")
        if "" in self.extra:
            raise ConfigError(f"impersonation of {self.user!r}: a key of extra is empty; name the attribute")
        for name, value in self.headers():
            if any((letter < " " and letter != "\t") or letter == "\x7f" for letter in value):
                raise ConfigError(f"{name}: {value!r} has control characters, which a header cannot carry")

    @classmethod
    def of(
        cls, user: str | ServiceAccount, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]
    ) -> Impersonation:
        """Return the identity that the arguments of `Cluster.acting_as` describe."""
        # None may be a field of a spec that is not set, and must not become the operator's own identity.
        given: object = user
        if not isinstance(given, str | ServiceAccount):
            raise ConfigError(f"acting_as: the user must be a name or a ServiceAccount, got {given!r:.60}")
        for option, value in (("groups", groups), *((f"extra[{key!r}]", values) for key, values in extra.items())):
            if isinstance(value, str):
                raise ConfigError(f"acting_as: {option} must be a list of texts, got {value!r:.60}")
        name = user.username if isinstance(user, ServiceAccount) else user
        found = cls(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})
        for header, value in found.headers():
            # The API server drops the spaces around a value of a header, and a role for an empty name is one for all.
            if not value or value != value.strip(" \t"):
                raise ConfigError(f"{header}: {value!r} must be a name without spaces around it")
        return found

    @property
    def account(self) -> ServiceAccount | None:
        """The service account that it is, as the API server reads the name; None for any other user."""
        namespace, separator, name = self.user.removeprefix(_ACCOUNTS).partition(":")
        is_account = self.user.startswith(_ACCOUNTS) and separator and not (dns_label(namespace) or dns_subdomain(name))
        return ServiceAccount(name, namespace) if is_account else None

    @property
    def key(self) -> str:
        """A text that is equal for equal identities only: the same user with other groups has other rights."""
        return repr(self.headers())

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of each request; `Impersonate-Group` and `Impersonate-Extra-…` may come several times."""
        return (
            ("Impersonate-User", self.user),
            *((("Impersonate-Uid", self.uid),) if self.uid else ()),
            *(("Impersonate-Group", group) for group in self.groups),
            *(
                (f"Impersonate-Extra-{_escape(key)}", value)
                for key, values in sorted(self.extra.items())
                for value in values
            ),
        )


def _escape(key: str) -> str:
    """Percent-encode the bytes of a key that the name of a header cannot have, and the percent sign."""
    lower = "".join(letter.lower() if letter.isascii() else letter for letter in key)
    return "".join(chr(byte) if byte in _TOKEN else f"%{byte:02X}" for byte in lower.encode())
