"""What must outlive a reconcile pass, in one bounded table.

A server may store something else than it was sent: an admission webhook rewrites a value, a field is normalised in a
way we do not know. Whoever compares only what was sent with what is stored writes again and again. The operator's
`Cluster` therefore remembers, per object and field manager, which sent value came back as which stored value. The
table is bounded, and losing it (a restart) costs one write per affected object.

It remembers when an object was last written, with which wish, and how often that was undone since: so that two writers
that each insist on their value are noticed. Losing that costs a few writes before it is noticed again.

It also remembers, as a few bytes per object, in which version an object was last found to need nothing, and for which
wish: as long as both stay the same, comparing again would say the same. Losing that costs one comparison.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeAlias

from ocf.objects import ObjectKey

__all__ = ["ApplyCache", "LastWrite", "Rewrites"]

Rewrites: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Field path to (value sent, value stored)."""

_NOTHING: Final[Rewrites] = {}


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write of an object.

    Args:
        wish: Digest of what was written.
        at: When, as `Clock.elapsed` told it.
        version: The object's `resourceVersion` after it.
        undone: How often in a row this wish was undone soon after it was written.
        noticed: Whether it is known already that this very write was undone.
    """

    desired_hash: bytes
    at: timedelta
    version: str = ""
    reverted: int = 0
    noticed: bool = False


@dataclass(slots=True)
class ApplyCache:
    """Remembers, per object and field manager, what became of our writes.

    Args:
        limit: How many objects are remembered; the one used longest ago is forgotten first.

    Example:
        >>> memory = ApplyCache(limit=1)
        >>> memory.remember("uid-1", "manager", {"spec.image": ("web", "mirror/web")})
        >>> memory.rewrites("uid-1", "manager")["spec.image"]
        ('web', 'mirror/web')
        >>> memory.remember("uid-2", "manager", {"spec.image": ("web", "mirror/web")})
        >>> dict(memory.rewrites("uid-1", "manager"))
        {}
    """

    limit: int = 10_000
    _in_sync: OrderedDict[tuple[str, str], tuple[str, bytes]] = field(
        default_factory=OrderedDict, init=False, repr=False
    )
    _table: OrderedDict[tuple[str, str], Rewrites] = field(default_factory=OrderedDict, init=False, repr=False)
    _writes: OrderedDict[tuple[ObjectKey, str], LastWrite] = field(default_factory=OrderedDict, init=False, repr=False)

    def rewrites(self, uid: str, manager: str) -> Rewrites:
        """Return what is remembered of an object.

        Args:
            uid: The object's uid.
            manager: The field manager that wrote.

        Returns:
            The rewritten fields; empty when nothing is known.
        """
        known = self._table.get((uid, manager))
        if known is None:
            return _NOTHING
        self._table.move_to_end((uid, manager))
        return known

    def remember(self, uid: str, manager: str, rewrites: Rewrites) -> None:
        """Replace what is remembered of an object.

        Args:
            uid: The object's uid.
            manager: The field manager that wrote.
            rewrites: The fields that came back different; none of them forgets the object.
        """
        self._table.pop((uid, manager), None)
        if rewrites:
            self._table[uid, manager] = rewrites
            while len(self._table) > self.limit:
                self._table.popitem(last=False)

    def is_in_sync(self, uid: str, manager: str, version: str, digest: bytes) -> bool:
        """Tell whether an object was found to need nothing, in this very version and for this very wish.

        Args:
            uid: The object's uid.
            manager: The field manager that would write.
            version: Its resourceVersion.
            digest: Digest of what would be applied.
        """
        return self._in_sync.get((uid, manager)) == (version, digest)

    def mark_in_sync(self, uid: str, manager: str, version: str, digest: bytes) -> None:
        """Note that an object needs nothing.

        Args:
            uid: The object's uid.
            manager: The field manager that would write.
            version: Its resourceVersion.
            digest: Digest of what would be applied.
        """
        self._in_sync[uid, manager] = (version, digest)
        self._in_sync.move_to_end((uid, manager))
        while len(self._in_sync) > self.limit:
            self._in_sync.popitem(last=False)

    def last_write(self, key: ObjectKey, manager: str) -> LastWrite | None:
        """Return what is remembered of the last write of an object, whether it is still there or not.

        Args:
            key: What the object is called.
            manager: The field manager that wrote.
        """
        return self._writes.get((key, manager))

    def note_write(self, key: ObjectKey, manager: str, write: LastWrite) -> None:
        """Replace what is remembered of the last write of an object.

        Args:
            key: What the object is called.
            manager: The field manager that wrote.
            write: The write.
        """
        self._writes[key, manager] = write
        self._writes.move_to_end((key, manager))
        while len(self._writes) > self.limit:
            self._writes.popitem(last=False)

    def forget_write(self, key: ObjectKey, manager: str) -> None:
        """Forget the last write of an object, because we deleted it ourselves.

        Args:
            key: What the object is called.
            manager: The field manager that wrote.
        """
        self._writes.pop((key, manager), None)
