"""What the arguments of `ocf explain` ask for: an owner of any kind, or an autoscaler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["OwnerQuestion", "owner_question"]

_AUTOSCALERS: Final = frozenset({"hpa", "horizontalpodautoscaler", "horizontalpodautoscalers"})
_KIND_AND_NAME: Final = 2
_LEASE_GROUPS: Final = frozenset({"", "coordination.k8s.io", "v1.coordination.k8s.io"})


@dataclass(frozen=True, slots=True)
class OwnerQuestion:
    """What a user asks for.

    Args:
        kind: The kind, as kubectl takes it.
        name: The name; empty for all owners of the kind.
        files: Files to read instead of a cluster.
        namespace: The namespace; None for that of the context, and with files for any.
        kubeconfig: Kubeconfig file; None for the default of kubectl.
        context: Context of the kubeconfig; None for the current one.
        components: The operator's code, `MODULE`, `MODULE:NAME` or `MODULE:FUNCTION`; empty for none.
    """

    kind: str
    name: str
    files: Sequence[str] = ()
    namespace: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    components: str = ""

    @property
    def is_lease(self) -> bool:
        """Whether the kind is that of Leases, and one is meant."""
        kind, _, group = self.kind.lower().partition(".")
        return bool(self.name) and kind in {"lease", "leases"} and group in _LEASE_GROUPS


def owner_question(words: Sequence[str], *, every: bool) -> OwnerQuestion | None:
    """Return the owner that arguments name, `shop/corner` or `shop corner`; None if they name an autoscaler.

    Args:
        every: Whether all owners of a kind are meant.

    Raises:
        ConfigError: If all are meant and the arguments are not one kind.
    """
    parts = [part for word in words for part in word.split("/")]
    if every:
        from ocf.errors import ConfigError

        if len(parts) != 1 or not parts[0]:
            raise ConfigError(f'--all needs one KIND, such as shops, got "{" ".join(words)}"')
        return OwnerQuestion(parts[0], "")
    is_autoscaler = parts[:1] and parts[0].lower().partition(".")[0] in _AUTOSCALERS
    if len(parts) != _KIND_AND_NAME or not all(parts) or is_autoscaler:
        return None
    return OwnerQuestion(parts[0], parts[1])
