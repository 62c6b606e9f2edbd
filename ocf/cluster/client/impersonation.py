"""Impersonation: requests as another user than the one who authenticates.

The user who authenticates needs the right to impersonate, the verb `impersonate`; the API server then authorizes the
request as the other user (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ocf.errors import ConfigError

__all__ = ["Impersonation"]

_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")  # of RFC 9110, without "%"


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
