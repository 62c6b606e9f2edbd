"""What makes and ends the informers of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ocf.cluster.cache.informer import Informer
    from ocf.cluster.cache.keys import WatchScope
    from ocf.cluster.cache.selection import Selection

__all__ = ["InformerMaker"]


class InformerMaker(Protocol):
    """Makes the informers of a kind, and ends them."""

    def make(self, scope: WatchScope, selection: Selection | None) -> Informer:
        """Make an informer; None selects all."""
        ...

    def end(self, informer: Informer) -> None:
        """Stop an informer."""
        ...

    def keeps(self, informer: object) -> bool:
        """Return whether those of a kind may have more informers; not once they are being closed."""
        ...
