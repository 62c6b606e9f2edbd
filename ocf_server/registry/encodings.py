"""Cache of encoded objects, so that each state of an object is encoded once for all responses and watches.

A resource version identifies one state of one object. Encodings of present objects are kept as long as the objects are
stored: they take a fraction of the memory of the objects. All others, such as the events of watches, are kept up to a
total size, the most recent ones.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

__all__ = ["EncodingCache"]

# Enough for watches that are a little behind; a state that is not kept is encoded again.
_RECENT_BYTES: Final = 16 * 2**20
_Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class EncodingCache:
    """Encoded objects, by resource version and API version.

    Args:
        limit: Total size in bytes of the encodings that are not of present objects.

    Example:
        >>> cache = EncodingCache()
        >>> cache.add("7", "v1", b"{}", present=True)
        >>> cache.find("7", "v1"), cache.find("8", "v1")
        (b'{}', None)
    """

    limit: int = _RECENT_BYTES
    _present: dict[str, dict[str, bytes]] = field(default_factory=dict, init=False, repr=False)
    _recent: deque[tuple[_Key, int]] = field(default_factory=deque, init=False, repr=False)
    _past: dict[_Key, bytes] = field(default_factory=dict, init=False, repr=False)
    _size: int = field(default=0, init=False, repr=False)

    def find(self, resource_version: str, form: str) -> bytes | None:
        """Return the encoding of one state of an object, or None.

        Args:
            form: API version, or another name of what was encoded.
        """
        known = self._present.get(resource_version)
        found = None if known is None else known.get(form)
        return self._past.get((resource_version, form)) if found is None else found

    def add(self, resource_version: str, form: str, encoded: bytes, *, present: bool) -> None:
        """Add an encoding of one state of an object.

        Args:
            resource_version: As for `find`.
            form: As for `find`.
            present: Whether it is kept until the state is replaced; otherwise only while it is recent.
        """
        if present:
            self._present.setdefault(resource_version, {})[form] = encoded
        else:
            self._remember((resource_version, form), encoded)

    def retire(self, resource_version: str) -> None:
        """Record that a state was replaced: its encodings are kept only while they are recent."""
        for form, encoded in self._present.pop(resource_version, {}).items():
            self._remember((resource_version, form), encoded)

    def _remember(self, key: _Key, encoded: bytes) -> None:
        if key in self._past:
            return
        self._past[key] = encoded
        self._recent.append((key, len(encoded)))
        self._size += len(encoded)
        while self._size > self.limit:
            oldest, freed = self._recent.popleft()
            self._past.pop(oldest, None)
            self._size -= freed
