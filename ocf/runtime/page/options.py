"""How the page of a process is served."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ocf.component.diff import ComponentDiff
    from ocf.objects import ObjectKey
    from ocf.ownership import OwnerExplanation

__all__ = ["OwnerEditor", "PageOptions", "SpecText"]

_PORT: Final = 8090


@dataclass(frozen=True, slots=True)
class SpecText:
    """The spec of an owner, to be edited.

    Args:
        text: The spec as YAML.
        generation: The generation of the owner that has it; an edit of another one is rejected.
    """

    text: str
    generation: str


class OwnerEditor(Protocol):
    """Reads and edits owners for the page of `ocf dev`, whose API server is its own."""

    async def explain(self, owner: ObjectKey) -> OwnerExplanation:
        """Return the explanation of an owner from all that the API server has."""
        ...

    async def spec(self, owner: ObjectKey) -> SpecText:
        """Return the spec of an owner."""
        ...

    async def planned(self, owner: ObjectKey, edited: SpecText) -> Sequence[ComponentDiff]:
        """Return what the reconcile that follows an edit would write; nothing is written.

        Raises:
            OcfError: If the spec cannot be read, or the API server rejects it.
        """
        ...

    async def write(self, owner: ObjectKey, edited: SpecText) -> None:
        """Write the spec of an owner.

        Raises:
            OcfError: As by `planned`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How the page of a process is served, which shows its owners and what its reconciles did.

    The page writes nothing, and hides the values of Secrets that reconciles have read or written. A caller needs a
    token of the cluster, and sees the owners that its user may list, by a TokenReview and SubjectAccessReviews.

    Args:
        port: The port; 0 takes any free port.
        host: The address. The default is reached by `kubectl port-forward`. The page has no TLS, and callers send
            tokens: where another address is given, a proxy in front of it must have TLS.
        editor: Of `ocf dev`, whose page has no users; None everywhere else.

    Raises:
        ConfigError: If an editor would be served to other machines.

    Example:
        >>> from ocf.runtime.operator import ManagerOptions
        >>> options = ManagerOptions(page=PageOptions(port=9000))
    """

    port: int = _PORT
    host: str = "127.0.0.1"
    editor: OwnerEditor | None = None

    def __post_init__(self) -> None:
        if self.editor is not None and not _is_loopback(self.host):
            raise ConfigError(
                f"a page with an editor authenticates no users, so host must be a loopback address, got {self.host}"
            )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
